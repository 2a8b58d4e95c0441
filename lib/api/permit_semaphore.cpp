#include <latchkey/permit_semaphore.hpp>

#include <api/lease_state.hpp>
#include <api/permit_calls.hpp>
#include <wire/commands.hpp>
#include <wire/permit_semaphore.hpp>

namespace latchkey {

namespace {

using detail::check_least;
using detail::permit_command;

detail::command_request permits_request(permit_command what, std::int64_t n = 0, detail::refusal wrong = {}) {
  return {.command = static_cast<unsigned char>(what), .amount = n, .wrong = std::move(wrong)};
}

// Of one permit. What is wrong with its id is found before anything is sent.
detail::command_request permit_request(permit_command what, std::string const& id) {
  auto made = permits_request(what);
  auto bytes = detail::permit_id_bytes(id);
  if (bytes)
    made.argument = std::move(*bytes);
  else
    made.wrong = {errc::bad_argument, "a permit's id has 32 hexadecimal digits"};
  return made;
}

auto permits_try_set(int n) { return permits_request(permit_command::try_set, n, check_least(n, 0)); }
auto permits_set(int n) { return permits_request(permit_command::set, n, check_least(n, 0)); }
auto permit_release(std::string const& id) { return permit_request(permit_command::try_release, id); }

detail::command_request permit_update(std::string const& id, milliseconds lease) {
  auto made = permit_request(permit_command::update, id);
  if (!made.wrong) made.wrong = detail::check_lease(lease);
  made.lease = lease;
  return made;
}

// The id of the permit that this owner takes. It is made before that, since there may be no memory for it afterwards.
std::string id_of(detail::lock_key const& key, std::uint64_t who) {
  return detail::permit_id_text(key.which->field(key.engine->id(), who, key.mode));
}

detail::refusal fill_take_id(detail::operation& call, detail::lock_key const& key, detail::take_request const& asked,
                             std::string& id) {
  auto wrong = fill_take(call, key, asked);
  id = id_of(key, call.owner);
  return wrong;
}

std::optional<std::string> take_id(detail::lock_key const& key, detail::take_request const& asked) {
  std::string id;
  return run_call(key, fill_take_id, asked, id).yes ? std::optional(std::move(id)) : std::nullopt;
}

// `finish` is also given the id.
template <class Finish, class... Values>
void start_take_id(std::shared_ptr<detail::lock_key const> const& key, detail::take_request const& asked,
                   detail::handler<void(error_code, Values...)> done, Finish finish) {
  auto const id = std::make_shared<std::string>();
  auto const with_id = [id, finish](detail::operation const& call) { return finish(call, std::move(*id)); };
  start_call(key, std::move(done), with_id, fill_take_id, asked, *id);
}

constexpr auto no_such_permit = "there is no such permit, or its lease had ended";

// A release that finds nothing is an error, and for try_release an answer.
auto const end_release = [](detail::operation const& call) {
  bool const gone = !call.error && call.value == 0;
  return std::tuple(gone ? error_code(errc::lease_lost) : call.error);
};

detail::refusal fill_permit(detail::operation& call, detail::lock_key const& key, owner who,
                            acquire_options const& options) {
  if (options.max_hold) return {errc::bad_argument, "max_hold is for holds that the watchdog renews"};
  if (auto wrong = check_options(key, options)) return wrong;
  return fill_acquire(call, key, {who, options.wait, options.lease, std::nullopt});
}

}  // namespace

permit_semaphore::permit_semaphore(key_ptr key) noexcept : key_(std::move(key)) {}

std::string const& permit_semaphore::name() const noexcept { return key_->name; }
permit_semaphore::executor_type permit_semaphore::get_executor() const { return detail::executor_of(*key_); }

bool operator==(permit_semaphore const& a, permit_semaphore const& b) noexcept {
  return a.key_->engine == b.key_->engine && a.key_->name == b.key_->name;
}

bool permit_semaphore::try_set_permits(int permits) const { return command(*key_, permits_try_set(permits)) != 0; }
void permit_semaphore::set_permits(int permits) const { command(*key_, permits_set(permits)); }
void permit_semaphore::add_permits(int permits) const { command(*key_, permits_request(permit_command::add, permits)); }

int permit_semaphore::available_permits() const {
  return detail::as_int(command(*key_, permits_request(permit_command::available)));
}

int permit_semaphore::acquired_permits() const {
  return detail::as_int(command(*key_, permits_request(permit_command::acquired)));
}

std::string permit_semaphore::acquire() const { return take_id(*key_, {}).value(); }
std::string permit_semaphore::acquire(timespan lease) const { return take_id(*key_, {.lease = lease}).value(); }
std::optional<std::string> permit_semaphore::try_acquire() const { return try_acquire(milliseconds::zero()); }

std::optional<std::string> permit_semaphore::try_acquire(timespan wait) const { return take_id(*key_, {.wait = wait}); }

std::optional<std::string> permit_semaphore::try_acquire(timespan wait, timespan lease) const {
  return take_id(*key_, {.wait = wait, .lease = lease});
}

void permit_semaphore::release(std::string const& id) const {
  if (!try_release(id)) throw lock_error(errc::lease_lost, no_such_permit);
}

bool permit_semaphore::try_release(std::string const& id) const { return command(*key_, permit_release(id)) != 0; }

bool permit_semaphore::update_lease_time(std::string const& id, timespan lease) const {
  return command(*key_, permit_update(id, lease)) != 0;
}

permit permit_semaphore::acquire_permit(acquire_options options) const {
  return acquire_permit(options, std::stop_token());
}

permit permit_semaphore::acquire_permit(acquire_options options, std::stop_token stop) const {
  detail::check_blocking(*key_);
  owner const who = owner::make();
  std::string id;
  auto shown = acquire_lease(key_, who, options, stop, [&](detail::operation& call) {
    id = id_of(*key_, detail::owner_access::number(who));
    return fill_permit(call, *key_, who, options);
  });
  return shown ? permit(std::move(shown), std::move(id)) : permit();
}

struct permit_semaphore::give_permit : detail::give_lease {
  std::string id;

  std::tuple<error_code, permit> operator()(detail::operation const& call) {
    auto [failed, shown] = give_lease::operator()(call);
    return {failed, shown ? permit(std::move(shown), std::move(id)) : permit()};
  }
};

void permit_semaphore::start_acquire_permit(key_ptr const& key, detail::handler<void(error_code, permit)> done,
                                            acquire_options options) {
  owner const who = owner::make();
  auto const state = std::make_shared<detail::lease_state>(key, who, options);
  give_permit finish{{state}, id_of(*key, detail::owner_access::number(who))};
  start_acquire_lease(state, std::move(done), std::move(finish),
                      [&](detail::operation& call) { return fill_permit(call, *key, who, options); });
}

void permit_semaphore::start_acquire(key_ptr const& key, detail::handler<void(error_code, std::string)> done,
                                     std::optional<milliseconds> lease) {
  auto const finish = [](detail::operation const& call, std::string id) {
    return std::tuple(call.error, call.error || !call.yes ? std::string() : std::move(id));
  };
  start_take_id(key, {.lease = lease}, std::move(done), finish);
}

void permit_semaphore::start_try_acquire(key_ptr const& key,
                                         detail::handler<void(error_code, std::optional<std::string>)> done,
                                         milliseconds wait, std::optional<milliseconds> lease) {
  auto const finish = [](detail::operation const& call, std::string id) {
    return std::tuple(call.error, call.error || !call.yes ? std::nullopt : std::optional(std::move(id)));
  };
  start_take_id(key, {.wait = wait, .lease = lease}, std::move(done), finish);
}

void permit_semaphore::start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done, int permits) {
  start_call(key, std::move(done), detail::end_with_yes, detail::fill_command, permits_try_set(permits));
}

void permit_semaphore::start_set(key_ptr const& key, detail::handler<void(error_code)> done, int permits) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_command, permits_set(permits));
}

void permit_semaphore::start_add(key_ptr const& key, detail::handler<void(error_code)> done, int permits) {
  start_call(key, std::move(done), detail::end_plainly, detail::fill_command,
             permits_request(permit_command::add, permits));
}

void permit_semaphore::start_available(key_ptr const& key, detail::handler<void(error_code, int)> done) {
  start_call(key, std::move(done), detail::end_with_int, detail::fill_command,
             permits_request(permit_command::available));
}

void permit_semaphore::start_acquired(key_ptr const& key, detail::handler<void(error_code, int)> done) {
  start_call(key, std::move(done), detail::end_with_int, detail::fill_command,
             permits_request(permit_command::acquired));
}

void permit_semaphore::start_release(key_ptr const& key, detail::handler<void(error_code)> done, std::string id) {
  start_call(key, std::move(done), end_release, detail::fill_command, permit_release(id));
}

void permit_semaphore::start_try_release(key_ptr const& key, detail::handler<void(error_code, bool)> done,
                                         std::string id) {
  start_call(key, std::move(done), detail::end_with_yes, detail::fill_command, permit_release(id));
}

void permit_semaphore::start_update(key_ptr const& key, detail::handler<void(error_code, bool)> done, std::string id,
                                    milliseconds lease) {
  start_call(key, std::move(done), detail::end_with_yes, detail::fill_command, permit_update(id, lease));
}

}  // namespace latchkey
