#include <base/clock.hpp>
#include <engine/requests.hpp>
#include <latchkey/lock_state.hpp>
#include <wire/number.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// Longer ones overflow the server's arithmetic sooner or later, and mean "for ever": that is the watchdog's work.
constexpr milliseconds longest_lease = std::chrono::hours(24 * 365 * 10);

refusal fill(operation& call, lock_key const& key, operation::type what) {
  if (key.forked()) return {errc::closed, "the client belongs to the parent process"};
  call.what = what;
  call.mode = key.mode;
  call.which = key.which.get();
  call.name = key.name;
  call.started = boot_now();
  call.deadline = key.budget_end(call.started);
  return {};
}

// Some holds are trusted for less time than their lease.
refusal check_drift(lock_key const& key, milliseconds length) {
  if (to_nanoseconds(length) > key.drift(length)) return {};
  return {
      errc::bad_argument,
      "a lease must be longer than the clocks may run apart: clock_margin, or 2 ms and a hundredth of a red lock's"};
}

refusal check_known(lock_key const& key, operation::type what, query question) {
  auto const why = key.refuses(what, question);
  return why.empty() ? refusal() : refusal{errc::bad_argument, std::string(why)};
}

refusal check_lease(lock_key const& key, milliseconds length) {
  if (length > milliseconds::zero())
    if (auto wrong = check_drift(key, length)) return wrong;
  return detail::check_lease(length);
}

}  // namespace

refusal check_lease(milliseconds length) {
  if (length <= milliseconds::zero()) return {errc::bad_argument, "a lease must be longer than zero"};
  if (length > longest_lease) return {errc::bad_argument, "a lease must not be longer than ten years"};
  return {};
}

refusal fill_acquire(operation& call, lock_key const& key, acquire_request const& asked) {
  if (auto wrong = fill(call, key, operation::type::acquire)) return wrong;
  call.owner = owner_access::number(asked.who);
  if (asked.lease) {
    if (auto wrong = check_lease(key, *asked.lease)) return wrong;
    if (asked.max_hold) return {errc::bad_argument, "max_hold is for holds without a lease of their own"};
    call.lease = *asked.lease;
  }
  if (asked.max_hold) {
    if (*asked.max_hold <= milliseconds::zero()) return {errc::bad_argument, "max_hold must be longer than zero"};
    if (auto wrong = check_drift(key, *asked.max_hold)) return wrong;
    call.max_hold = *asked.max_hold;
  }
  call.once = asked.wait && *asked.wait <= milliseconds::zero();
  call.line_time = key.engine->settings().fair_lock_wait_timeout;
  if (asked.wait && !call.once) call.line_time = std::min(call.line_time, *asked.wait);
  if (!asked.wait)
    call.deadline = never;
  else if (!call.once)
    call.deadline = after(call.started, *asked.wait);
  return {};
}

refusal check_options(lock_key const& key, acquire_options const& options) {
  auto const refuse = [](char const* why) { return refusal{errc::bad_argument, why}; };
  if (options.lock_delay < milliseconds::zero()) return refuse("lock_delay must not be less than zero");
  if (options.lock_delay > longest_lease) return refuse("lock_delay must not be longer than ten years");
  if (options.lock_delay > milliseconds::zero() && (!key.which || !key.which->rules().renews))
    return refuse("lock_delay is for locks of one name");
  if (!options.progress_within) return {};
  if (*options.progress_within <= milliseconds::zero()) return refuse("progress_within must be longer than zero");
  if (options.lease || (key.which && !key.which->rules().renews))
    return refuse("progress_within is for holds that the watchdog renews");
  return {};
}

refusal fill_extend(operation& call, lock_key const& key, owner who, hold_id hold, milliseconds length) {
  if (auto wrong = fill(call, key, operation::type::extend)) return wrong;
  if (auto wrong = check_lease(key, length)) return wrong;
  call.owner = owner_access::number(who);
  call.hold = hold;
  call.lease = length;
  return {};
}

refusal fill_release(operation& call, lock_key const& key, owner who, hold_id hold) {
  if (auto wrong = fill(call, key, operation::type::release)) return wrong;
  // After that it goes on behind.
  milliseconds const most = std::max(key.engine->settings().close_timeout, first_try_time);
  call.deadline = std::min(call.deadline, after(call.started, most));
  call.owner = owner_access::number(who);
  call.hold = hold;
  return {};
}

refusal fill_force_unlock(operation& call, lock_key const& key) {
  if (auto wrong = check_known(key, operation::type::force_unlock, {})) return wrong;
  return fill(call, key, operation::type::force_unlock);
}

refusal fill_force_unlock_of(operation& call, lock_key const& key, holder const& who) {
  if (auto wrong = fill_force_unlock(call, key)) return wrong;
  if (who.client_id.empty()) return {errc::bad_argument, "the holder is empty"};
  call.mode = who.writes && key.which->rules().modes > 1 ? 1 : 0;
  std::string field = who.client_id;
  std::uint64_t number = 0;
  if (!who.owner.empty() && !read_number(who.owner, number))
    return {errc::bad_argument, "the owner of a holder is a number"};
  if (!who.owner.empty()) field = key.which->field(who.client_id, number, call.mode);
  if (who.client_id == key.engine->id()) call.owner = number;
  call.argument = std::make_shared<std::string const>(std::move(field));
  return {};
}

refusal fill_query(operation& call, lock_key const& key, query what, std::optional<owner> who) {
  if (auto wrong = fill(call, key, operation::type::query)) return wrong;
  if (auto wrong = check_known(key, operation::type::query, what)) return wrong;
  call.question = what;
  if (who) call.owner = owner_access::number(*who);
  return {};
}

refusal fill_adopt(operation& call, lock_key const& key, owner who, operation const& asked) {
  if (auto wrong = fill(call, key, operation::type::adopt)) return wrong;
  call.started = asked.started;
  call.value = asked.value;
  call.owner = owner_access::number(who);
  return {};
}

refusal fill_connect(operation& call, lock_key const& key, std::optional<milliseconds> wait) {
  // A shorter wait would end before any server could answer.
  constexpr milliseconds least{50};
  if (auto wrong = fill(call, key, operation::type::connect)) return wrong;
  call.deadline = after(call.started, std::max(least, wait.value_or(key.engine->settings().connect_timeout)));
  return {};
}

void check_blocking(lock_key const& key) {
  if (key.forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  if (key.inside())
    throw lock_error(errc::would_deadlock, "a blocking call on a thread that runs the client's executor");
}

void throw_if(refusal const& wrong) {
  if (wrong) throw lock_error(wrong.code, wrong.text);
}

void throw_if(operation const& call) {
  if (call.error) throw lock_error(call.error, call.text);
}

}  // namespace latchkey::detail
