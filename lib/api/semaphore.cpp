#include <latchkey/semaphore.hpp>

#include <api/permit_calls.hpp>
#include <wire/commands.hpp>

namespace latchkey {

namespace {

using detail::check_least;
using detail::semaphore_command;

detail::command_request semaphore_request(semaphore_command what, int n, detail::refusal wrong = {}) {
  return {.command = static_cast<unsigned char>(what), .amount = n, .wrong = std::move(wrong)};
}

auto semaphore_try_set(int n) { return semaphore_request(semaphore_command::try_set, n, check_least(n, 0)); }
auto semaphore_add(int n) { return semaphore_request(semaphore_command::add, n); }
auto semaphore_drain() { return semaphore_request(semaphore_command::drain, 0); }
auto semaphore_release(int n) { return semaphore_request(semaphore_command::release, n, check_least(n, 1)); }

}  // namespace

semaphore::semaphore(key_ptr key) noexcept : key_(std::move(key)) {}

std::string const& semaphore::name() const noexcept { return key_->name; }
semaphore::executor_type semaphore::get_executor() const { return detail::executor_of(*key_); }

bool operator==(semaphore const& a, semaphore const& b) noexcept {
  return a.key_->engine == b.key_->engine && a.key_->name == b.key_->name;
}

bool semaphore::try_set_permits(int permits) const { return command(*key_, semaphore_try_set(permits)) != 0; }
void semaphore::add_permits(int permits) const { command(*key_, semaphore_add(permits)); }
int semaphore::drain_permits() const { return detail::as_int(command(*key_, semaphore_drain())); }
int semaphore::available_permits() const { return detail::as_int(value_of(*key_)); }
void semaphore::acquire(int n) const { static_cast<void>(take(*key_, {.amount = n})); }
bool semaphore::try_acquire(int n) const { return try_acquire(n, milliseconds::zero()); }
bool semaphore::try_acquire(int n, timespan wait) const { return take(*key_, {.amount = n, .wait = wait}); }
bool semaphore::try_acquire_for(timespan wait) const { return try_acquire(1, wait); }
void semaphore::release(int n) const { command(*key_, semaphore_release(n)); }

void semaphore::start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done, int permits) {
  start_call(key, std::move(done), detail::end_with_yes, detail::fill_command, semaphore_try_set(permits));
}

void semaphore::start_add(key_ptr const& key, detail::handler<void(error_code)> done, int permits) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_command, semaphore_add(permits));
}

void semaphore::start_drain(key_ptr const& key, detail::handler<void(error_code, int)> done) {
  start_call(key, std::move(done), detail::end_with_int, detail::fill_command, semaphore_drain());
}

void semaphore::start_available(key_ptr const& key, detail::handler<void(error_code, int)> done) {
  start_call(key, std::move(done), detail::end_with_int, detail::fill_query, detail::query::value, std::nullopt);
}

void semaphore::start_acquire(key_ptr const& key, detail::handler<void(error_code)> done, int n) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_take, detail::take_request{.amount = n});
}

void semaphore::start_try_acquire(key_ptr const& key, detail::handler<void(error_code, bool)> done, int n,
                                  milliseconds wait) {
  start_call(key, std::move(done), detail::end_with_grant, detail::fill_take,
             detail::take_request{.amount = n, .wait = wait});
}

void semaphore::start_release(key_ptr const& key, detail::handler<void(error_code)> done, int n) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_command, semaphore_release(n));
}

}  // namespace latchkey
