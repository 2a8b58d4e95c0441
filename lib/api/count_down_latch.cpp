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
  detail::start_command(key, latch_try_set(count), std::move(done), detail::end_with_yes);
}

void count_down_latch::start_count_down(key_ptr const& key, detail::handler<void(error_code)> done) {
  detail::start_command(key, latch_count_down(), std::move(done), detail::end_plainly);
}

void count_down_latch::start_count(key_ptr const& key, detail::handler<void(error_code, std::int64_t)> done) {
  detail::start_value(key, std::move(done), end_with_count);
}

void count_down_latch::start_wait(key_ptr const& key, detail::handler<void(error_code)> done) {
  detail::start_take(key, {}, std::move(done), detail::end_plainly);
}

void count_down_latch::start_wait_for(key_ptr const& key, detail::handler<void(error_code, bool)> done,
                                      milliseconds wait) {
  detail::start_take(key, {.wait = wait}, std::move(done), detail::end_with_grant);
}

}  // namespace latchkey
