#include <latchkey/count_down_latch.hpp>

#include <api/permit_calls.hpp>
#include <wire/commands.hpp>

namespace latchkey {

namespace {

using detail::latch_command;

detail::command_request latch_try_set(std::int64_t count) {
  return {.command = static_cast<unsigned char>(latch_command::try_set),
          .amount = count,
          .wrong = detail::check_least(count, 1)};
}

detail::command_request latch_count_down() {
  return {.command = static_cast<unsigned char>(latch_command::count_down)};
}

auto const end_with_count = [](detail::operation const& call) {
  return std::tuple(call.error, call.error ? std::int64_t{0} : call.value);
};

}  // namespace

count_down_latch::count_down_latch(key_ptr key) noexcept : key_(std::move(key)) {}

std::string const& count_down_latch::name() const noexcept { return key_->name; }
count_down_latch::executor_type count_down_latch::get_executor() const { return detail::executor_of(*key_); }

bool operator==(count_down_latch const& a, count_down_latch const& b) noexcept {
  return a.key_->engine == b.key_->engine && a.key_->name == b.key_->name;
}

bool count_down_latch::try_set_count(std::int64_t count) const { return command(*key_, latch_try_set(count)) != 0; }
void count_down_latch::count_down() const { command(*key_, latch_count_down()); }
std::int64_t count_down_latch::count() const { return value_of(*key_); }
void count_down_latch::wait() const { static_cast<void>(take(*key_, {})); }
bool count_down_latch::wait_for(timespan wait) const { return take(*key_, {.wait = wait}); }

void count_down_latch::start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done,
                                     std::int64_t count) {
  start_call(key, std::move(done), detail::end_with_yes, detail::fill_command, latch_try_set(count));
}

void count_down_latch::start_count_down(key_ptr const& key, detail::handler<void(error_code)> done) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_command, latch_count_down());
}

void count_down_latch::start_count(key_ptr const& key, detail::handler<void(error_code, std::int64_t)> done) {
  start_call(key, std::move(done), end_with_count, detail::fill_query, detail::query::value, std::nullopt);
}

void count_down_latch::start_wait(key_ptr const& key, detail::handler<void(error_code)> done) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_take, detail::take_request{});
}

void count_down_latch::start_wait_for(key_ptr const& key, detail::handler<void(error_code, bool)> done,
                                      milliseconds wait) {
  start_call(key, std::move(done), detail::end_with_grant, detail::fill_take, detail::take_request{.wait = wait});
}

}  // namespace latchkey
