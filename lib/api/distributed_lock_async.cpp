#include <api/async_call.hpp>
#include <api/lease_state.hpp>
#include <api/query_answer.hpp>
#include <engine/requests.hpp>
#include <latchkey/distributed_lock.hpp>

namespace latchkey {

namespace {

using detail::operation;

auto const only_error = [](operation const& one) { return std::tuple(one.error); };
auto const yes_or_no = [](operation const& one) { return std::tuple(one.error, one.yes); };

template <class Value>
void start_question(std::shared_ptr<detail::lock_key const> const& key, detail::query_type what,
                    std::optional<owner> who, detail::handler<void(error_code, Value)> done) {
  auto const finish = [](operation const& one) {
    return std::tuple<error_code, Value>(one.error, one.error ? Value() : detail::answer_as<Value>(one.value));
  };
  auto call = detail::make_async_call(*key, key, std::move(done), finish);
  call->begin(fill_query(*call, *key, static_cast<detail::query>(what), who));
}

template <detail::query_type A, detail::query B>
constexpr bool same = static_cast<unsigned>(A) == static_cast<unsigned>(B);
static_assert(same<detail::query_type::is_locked, detail::query::is_locked> &&
              same<detail::query_type::is_held_by, detail::query::is_held_by> &&
              same<detail::query_type::hold_count, detail::query::hold_count> &&
              same<detail::query_type::time_to_live, detail::query::time_to_live> &&
              same<detail::query_type::token, detail::query::token>);

}  // namespace

distributed_lock::executor_type distributed_lock::get_executor() const { return detail::executor_of(*key_); }

void distributed_lock::start_lock(key_ptr const& key, owner who, std::optional<milliseconds> length,
                                  detail::handler<void(error_code)> done) {
  auto call = detail::make_async_call(*key, key, std::move(done), only_error);
  call->begin(fill_acquire(*call, *key, {who, std::nullopt, length, std::nullopt}));
}

void distributed_lock::start_try_lock(key_ptr const& key, owner who, milliseconds wait,
                                      std::optional<milliseconds> length,
                                      detail::handler<void(error_code, bool)> done) {
  auto call = detail::make_async_call(*key, key, std::move(done), yes_or_no);
  call->begin(fill_acquire(*call, *key, {who, wait, length, std::nullopt}));
}

void distributed_lock::start_unlock(key_ptr const& key, owner who, detail::handler<void(error_code)> done) {
  auto call = detail::make_async_call(*key, key, std::move(done), only_error);
  call->begin(fill_release(*call, *key, who, 0));
}

void distributed_lock::start_force_unlock(key_ptr const& key, detail::handler<void(error_code, bool)> done) {
  auto call = detail::make_async_call(*key, key, std::move(done), yes_or_no);
  call->begin(fill_force_unlock(*call, *key));
}

void distributed_lock::start_acquire(key_ptr const& key, acquire_options options,
                                     detail::handler<void(error_code, latchkey::lease)> done) {
  owner const who = options.owner ? *options.owner : owner::make();
  auto state = std::make_shared<detail::lease_state>(key, who, options);
  auto* const link = state.get();
  std::shared_ptr<void const> kept = state;  // the machine may name the link until the call is over
  auto call = detail::make_async_call(*key, std::move(kept), std::move(done), detail::give_lease{std::move(state)});
  detail::refusal wrong = fill_acquire(*call, *key, {who, options.wait, options.lease, options.max_hold});
  if (!wrong) wrong = check_options(*key, options);
  call->link = link;
  call->begin(wrong);
}

void distributed_lock::start_query(key_ptr const& key, detail::query_type what, std::optional<owner> who,
                                   detail::handler<void(error_code, bool)> done) {
  start_question(key, what, who, std::move(done));
}

void distributed_lock::start_query(key_ptr const& key, detail::query_type what, std::optional<owner> who,
                                   detail::handler<void(error_code, int)> done) {
  start_question(key, what, who, std::move(done));
}

void distributed_lock::start_query(key_ptr const& key, detail::query_type what, std::optional<owner> who,
                                   detail::handler<void(error_code, std::uint64_t)> done) {
  start_question(key, what, who, std::move(done));
}

void distributed_lock::start_query(key_ptr const& key, detail::query_type what, std::optional<owner> who,
                                   detail::handler<void(error_code, std::optional<milliseconds>)> done) {
  start_question(key, what, who, std::move(done));
}

}  // namespace latchkey
