#include <api/async_call.hpp>
#include <api/lease_state.hpp>
#include <engine/lock_key.hpp>
#include <engine/requests.hpp>
#include <engine/thread_holds.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/lock_state.hpp>
#include <latchkey/with_lock.hpp>

namespace latchkey {

namespace {

using detail::acquire_request;
using detail::blocking_call;
using detail::lock_key;
using detail::query;

bool take(lock_key const& key, std::optional<milliseconds> wait, std::optional<milliseconds> length,
          std::stop_token const& stop = {}) {
  detail::check_blocking(key);
  blocking_call call;
  throw_if(fill_acquire(call, key, {owner::this_thread(), wait, length, std::nullopt}));
  if (stop.stop_requested()) return false;
  auto* const mine = detail::thread_holds::of(*key.engine);
  key.run(call, stop);
  if (call.error == asio::error::operation_aborted) return false;
  throw_if(call);
  if (call.yes && mine) mine->took();
  return call.yes;
}

std::int64_t ask(lock_key const& key, query what, std::optional<owner> who) {
  return run_call(key, detail::fill_query, what, who).value;
}

// Waiting without limit for a lock that this very thread is to release would never end.
void check_self_wait(lock_key const& key, acquire_options const& options, detail::operation const& call) {
  owner const self = owner::this_thread();
  if (call.deadline != detail::never || options.owner == self) return;
  if (key.keeps_out(detail::owner_access::number(self)))
    throw lock_error(errc::would_deadlock, "this thread holds the lock; to re-enter name it as the owner");
}

}  // namespace

distributed_lock::distributed_lock(std::shared_ptr<detail::lock_key const> key) noexcept : key_(std::move(key)) {}

void distributed_lock::lock() const { static_cast<void>(take(*key_, std::nullopt, std::nullopt)); }
void distributed_lock::lock(timespan length) const { static_cast<void>(take(*key_, std::nullopt, length)); }
bool distributed_lock::lock(std::stop_token stop) const { return take(*key_, std::nullopt, std::nullopt, stop); }
bool distributed_lock::try_lock() const { return take(*key_, milliseconds::zero(), std::nullopt); }
bool distributed_lock::try_lock(timespan wait) const { return take(*key_, wait, std::nullopt); }
bool distributed_lock::try_lock(timespan wait, timespan length) const { return take(*key_, wait, length); }

void distributed_lock::unlock() const {
  detail::check_blocking(*key_);
  blocking_call call;
  throw_if(fill_release(call, *key_, owner::this_thread(), 0));
  key_->run(call);
  // Whatever the answer was, this hold is renewed no longer.
  if (auto* const mine = call.error == errc::not_owner ? nullptr : detail::thread_holds::known(*key_->engine))
    mine->gave();
  throw_if(call);
}

bool distributed_lock::force_unlock() const { return run_call(*key_, detail::fill_force_unlock).yes; }

bool distributed_lock::force_unlock_if(holder const& who) const {
  return run_call(*key_, detail::fill_force_unlock_of, who).yes;
}

bool distributed_lock::is_locked() const { return ask(*key_, query::is_locked, std::nullopt) != 0; }
bool distributed_lock::is_held_by_current_thread() const { return is_held_by(owner::this_thread()); }
bool distributed_lock::is_held_by(latchkey::owner who) const { return ask(*key_, query::is_held_by, who) != 0; }
int distributed_lock::hold_count() const { return hold_count(owner::this_thread()); }

int distributed_lock::hold_count(latchkey::owner who) const {
  return detail::answer_as<int>(ask(*key_, query::hold_count, who));
}

std::optional<milliseconds> distributed_lock::remaining_time_to_live() const {
  return detail::answer_as<std::optional<milliseconds>>(ask(*key_, query::time_to_live, std::nullopt));
}

std::uint64_t distributed_lock::get_token() const {
  return detail::answer_as<std::uint64_t>(ask(*key_, query::token, std::nullopt));
}

std::string const& distributed_lock::name() const noexcept { return key_->name; }
std_mutex distributed_lock::as_mutex() const { return std_mutex(*this); }
lease distributed_lock::acquire(acquire_options options) const { return acquire(options, std::stop_token()); }

lease distributed_lock::acquire(acquire_options options, std::stop_token stop) const {
  detail::check_blocking(*key_);
  owner const who = options.owner ? *options.owner : owner::make();
  return acquire_lease(key_, who, options, stop, [&](detail::operation& call) {
    detail::refusal wrong = check_options(*key_, options);
    if (!wrong) wrong = fill_acquire(call, *key_, {who, options.wait, options.lease, options.max_hold});
    if (!wrong) check_self_wait(*key_, options, call);
    return wrong;
  });
}

bool operator==(distributed_lock const& a, distributed_lock const& b) noexcept { return a.key_->same_as(*b.key_); }
std::size_t hash_value(distributed_lock const& lock) noexcept { return lock.key_->hash(); }

namespace {

using detail::operation;

auto const only_error = [](operation const& call) { return std::tuple(call.error); };
auto const yes_or_no = [](operation const& call) { return std::tuple(call.error, call.yes); };

template <detail::query_type A, detail::query B>
constexpr bool same = static_cast<unsigned>(A) == static_cast<unsigned>(B);
static_assert(same<detail::query_type::is_locked, detail::query::is_locked> &&
              same<detail::query_type::is_held_by, detail::query::is_held_by> &&
              same<detail::query_type::hold_count, detail::query::hold_count> &&
              same<detail::query_type::time_to_live, detail::query::time_to_live> &&
              same<detail::query_type::token, detail::query::token>);

}  // namespace

distributed_lock::executor_type distributed_lock::get_executor() const { return detail::executor_of(*key_); }

void distributed_lock::start_lock(key_ptr const& key, handler<> done, owner who, std::optional<milliseconds> length) {
  start_call(key, std::move(done), only_error, detail::fill_acquire, acquire_request{who, std::nullopt, length, {}});
}

void distributed_lock::start_try_lock(key_ptr const& key, handler<bool> done, owner who, milliseconds wait,
                                      std::optional<milliseconds> length) {
  start_call(key, std::move(done), yes_or_no, detail::fill_acquire, acquire_request{who, wait, length, {}});
}

void distributed_lock::start_unlock(key_ptr const& key, handler<> done, owner who) {
  start_call(key, std::move(done), only_error, detail::fill_release, who, 0u);
}

void distributed_lock::start_force_unlock(key_ptr const& key, handler<bool> done) {
  start_call(key, std::move(done), yes_or_no, detail::fill_force_unlock);
}

void distributed_lock::start_acquire(key_ptr const& key, handler<latchkey::lease> done, acquire_options options) {
  owner const who = options.owner ? *options.owner : owner::make();
  auto const state = std::make_shared<detail::lease_state>(key, who, options);
  start_acquire_lease(state, std::move(done), detail::give_lease{state}, [&](operation& call) {
    auto wrong = fill_acquire(call, *key, {who, options.wait, options.lease, options.max_hold});
    return wrong ? wrong : check_options(*key, options);
  });
}

template <class Value>
void distributed_lock::start_query(key_ptr const& key, handler<Value> done, detail::query_type what,
                                   std::optional<latchkey::owner> who) {
  auto const finish = [](operation const& call) {
    return std::tuple<error_code, Value>(call.error, call.error ? Value() : detail::answer_as<Value>(call.value));
  };
  start_call(key, std::move(done), finish, detail::fill_query, static_cast<detail::query>(what), who);
}

using asked_owner = std::optional<owner>;
template void distributed_lock::start_query(key_ptr const&, handler<bool>, detail::query_type, asked_owner);
template void distributed_lock::start_query(key_ptr const&, handler<int>, detail::query_type, asked_owner);
template void distributed_lock::start_query(key_ptr const&, handler<std::uint64_t>, detail::query_type, asked_owner);
template void distributed_lock::start_query(key_ptr const&, handler<std::optional<milliseconds>>, detail::query_type,
                                            asked_owner);

namespace {

void report(detail::lock_key const& key, event_type type, error_code const& why, char const* text) {
  if (key.engine->forked()) return;
  auto const me = detail::owner_access::number(owner::this_thread());
  key.engine->report({.type = type, .lock = key.name, .owner = me, .error = why, .text = text});
}

bool unanswered(error_code const& why) {
  return why == errc::timeout || why == errc::connection_lost || why == errc::connect_failed || why == errc::no_master;
}

}  // namespace

std_mutex::std_mutex(distributed_lock lock) noexcept : lock_(std::move(lock)) {}

void std_mutex::lock() const { lock_.lock(); }
bool std_mutex::try_lock() const { return lock_.try_lock(); }

bool std_mutex::try_for(timespan wait) const try { return lock_.try_lock(wait); } catch (lock_error const& problem) {
  if (!unanswered(problem.code())) throw;
  report(*lock_.key_, event_type::warning, problem.code(), problem.what());
  return false;
}

void std_mutex::unlock() const noexcept try { lock_.unlock(); } catch (boost::system::system_error const& problem) {
  report(*lock_.key_, event_type::unlock_failed, problem.code(), problem.what());
}

}  // namespace latchkey

namespace latchkey::detail {

void rethrow_as_lock_error(std::exception_ptr const& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (lock_error const&) {
    throw;
  } catch (boost::system::system_error const& known) {
    throw lock_error(known.code());
  }
}

}  // namespace latchkey::detail
