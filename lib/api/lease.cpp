#include <api/adoption.hpp>
#include <api/async_call.hpp>
#include <api/lease_state.hpp>
#include <base/clock.hpp>
#include <engine/requests.hpp>
#include <latchkey/lease.hpp>

#include <algorithm>

namespace latchkey::detail {

lease_state::lease_state(std::shared_ptr<lock_key const> key, owner who, acquire_options const& options)
    : key_(std::move(key)), owner_(who) {
  if (options.context != 0) set_more().context = options.context;
  if (options.lock_delay.count() != 0) set_more().lock_delay = options.lock_delay;
  if (options.progress_within) set_more().progress_within = to_nanoseconds(*options.progress_within);
  if (!key_->which || key_->which->rules().tokens) set_more();  // for what is known with the grant
}

// A client that closes refuses the release, and may be about to tell of the loss.
lease_state::~lease_state() {
  if (more().parts && !key_->engine->forked()) more().parts->unlink();
  delete watch_.load();
}

// The user's thread may ask for it while the client's tells of the loss: the first that is ready is the one.
loss_watch& lease_state::watch() {
  if (auto* const known = watch_.load()) return *known;
  auto made = std::make_unique<loss_watch>();
  loss_watch* first = nullptr;
  return watch_.compare_exchange_strong(first, made.get()) ? *made.release() : *first;
}

void lease_state::granted(operation const& call) {
  hold_ = call.hold;
  if (call.token != 0) set_token(call.token);
}

bool lease_state::claim_release() noexcept {
  if (released_.exchange(true)) return false;
  if (auto* const known = watch_.load()) known->forget();
  return true;
}

void lease_state::drop() noexcept {
  if (!key_->engine->forked() && claim_release()) give_up();
}

void lease_state::give_up() noexcept {
  key_->drop(owner_access::number(owner_), hold_);
  await_callback();
}

void lease_state::set_callback(lost_callback callback) {
  if (watch().set(std::move(callback))) key_->engine->post([self = shared_from_this()] { self->watch().call_back(); });
}

void lease_state::tell(error_code const& why) {
  if (!released()) watch().tell(why);
}

}  // namespace latchkey::detail

namespace latchkey {

namespace {

using detail::boot_now;
using detail::lease_state;

bool live(std::shared_ptr<lease_state> const& state) noexcept { return state && !state->released(); }

// May the hold be trusted, as far as this process knows? A child of fork() has inherited no hold.
bool trusted(std::shared_ptr<lease_state> const& state) noexcept {
  return live(state) && !state->is_lost() && !state->key().engine->forked();
}

// Ends a call whose hold is over. A lease that was never granted knows no client.
template <class Value>
void complete_after(std::shared_ptr<lease_state> const& state, detail::handler<void(error_code, Value)> done,
                    Value result) {
  if (!state || state->key().engine->forked())
    return detail::complete_later(asio::system_executor(), std::move(done), error_code(), result);
  detail::complete_later(state->key().engine, std::move(done), error_code(), result);
}

// What the machine's answer to a release means for a lease.
release_result result_of(detail::operation const& call, error_code& failed) {
  failed = {};
  if (!call.error) return call.released;
  if (call.error == errc::lease_lost || call.error == errc::not_owner) return release_result::expired;
  // The machine goes on with it in the background.
  if (call.error != errc::connection_lost && call.error != errc::timeout && call.error != errc::connect_failed)
    failed = call.error;
  return release_result::unknown;
}

}  // namespace

lease::lease() noexcept = default;
lease::lease(std::shared_ptr<detail::lease_state> state) noexcept : state_(std::move(state)) {}
lease::lease(lease&& other) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) {
    if (state_) state_->drop();
    state_ = std::move(other.state_);
  }
  return *this;
}

lease::~lease() {
  if (state_) state_->drop();
}

lease::operator bool() const noexcept { return live(state_); }

bool lease::held() const noexcept { return trusted(state_) && boot_now() < state_->until(); }

latchkey::owner lease::owner() const noexcept { return live(state_) ? state_->who() : detail::owner_access::from(0); }

std::string const& lease::name() const noexcept {
  static std::string const none;
  return live(state_) ? state_->key().name : none;
}

std::chrono::steady_clock::time_point lease::valid_until() const noexcept {
  if (!trusted(state_)) return {};
  auto const now = std::chrono::steady_clock::now();
  auto const rest = state_->until() - boot_now();
  // A deadline far ahead must not wrap around.
  if (rest > std::chrono::steady_clock::time_point::max() - now) return std::chrono::steady_clock::time_point::max();
  return now + rest;
}

milliseconds lease::remaining() const noexcept {
  if (!trusted(state_)) return milliseconds::zero();
  return std::max(std::chrono::floor<milliseconds>(state_->until() - boot_now()), milliseconds::zero());
}

void lease::progress() noexcept {
  if (trusted(state_)) state_->progress(boot_now());
}

std::optional<std::uint64_t> lease::fencing_token() const noexcept {
  if (!live(state_) || state_->token() == 0) return std::nullopt;
  return state_->token();
}

std::stop_token lease::lost() const noexcept { return live(state_) ? state_->stop_token() : std::stop_token(); }

void lease::set_on_lost(detail::lost_callback callback) {
  if (live(state_) && !state_->key().engine->forked()) state_->set_callback(std::move(callback));
}

asio::any_io_executor lease::executor() const {
  auto const& known = state_ ? state_ : released_;
  return known ? detail::executor_of(known->key()) : asio::any_io_executor(asio::system_executor());
}

lease lease::give_up() noexcept {
  if (state_) released_ = state_;
  lease given(std::move(state_));
  given.released_ = released_;
  return given;
}

bool lease::extend(timespan length) {
  if (!live(state_)) return false;
  detail::check_blocking(state_->key());
  detail::blocking_call call;
  throw_if(fill_extend(call, state_->key(), state_->who(), state_->hold(), length));
  state_->key().run(call);
  if (call.error == errc::lease_lost || call.error == errc::not_owner) return false;
  throw_if(call);
  return call.yes;
}

void lease::start_extend(std::shared_ptr<detail::lease_state> const& state,
                         detail::handler<void(error_code, bool)> done, std::shared_ptr<detail::lease_state> const& from,
                         milliseconds length) {
  auto const finish = [](detail::operation const& call) {
    bool const lost = call.error == errc::lease_lost || call.error == errc::not_owner;
    return std::tuple(lost ? error_code() : call.error, !lost && call.yes);
  };
  if (!live(state)) return complete_after(state ? state : from, std::move(done), false);
  auto call = detail::make_async_call(state->key(), state, std::move(done), finish);
  call->begin(fill_extend(*call, state->key(), state->who(), state->hold(), length));
}

std::string lease::detach() {
  if (!live(state_)) return {};
  auto const& key = state_->key();
  if (key.forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  if (!key.which) throw lock_error(errc::bad_argument, "a lock of several members cannot be detached");
  detail::detached found;
  key.engine->machine_steps().take([&](detail::client_machine& machine, detail::instant now, detail::actions& out) {
    auto const who = detail::owner_access::number(state_->who());
    found = machine.detach(*key.which, key.name, who, state_->hold(), now, out);
  });
  if (!found.refused.empty())
    throw lock_error(errc::bad_argument, "it cannot be detached: " + std::string(found.refused));
  std::string made;
  if (found.owner.empty()) {
    state_->drop();
  } else {
    made = token_of(key, found.owner, state_->token());
    if (state_->claim_release()) state_->await_callback();
  }
  state_.reset();
  return made;
}

release_result lease::release() {
  if (!live(state_)) return release_result::expired;
  if (state_->key().forked()) detail::check_blocking(state_->key());
  if (state_->key().inside()) {
    state_->drop();
    detail::check_blocking(state_->key());
  }
  if (!state_->claim_release()) return release_result::expired;
  detail::blocking_call call;
  try {
    throw_if(fill_release(call, state_->key(), state_->who(), state_->hold()));
    state_->key().run(call);
  } catch (std::bad_alloc const&) {
    state_->give_up();
    throw;
  }
  state_->await_callback();
  error_code failed;
  release_result const result = result_of(call, failed);
  if (failed) throw lock_error(failed, call.text);
  return result;
}

void lease::start_release(std::shared_ptr<detail::lease_state> state, std::shared_ptr<detail::lease_state> const& from,
                          detail::handler<void(error_code, release_result)> done) {
  auto const finish = [](detail::operation const& call) {
    error_code failed;
    release_result const result = result_of(call, failed);
    return std::tuple(failed, result);
  };
  if (!live(state) || (!state->key().engine->forked() && !state->claim_release()))
    return complete_after(state ? state : from, std::move(done), release_result::expired);
  try {
    auto call = detail::make_async_call(state->key(), state, std::move(done), finish);
    call->begin(fill_release(*call, state->key(), state->who(), state->hold()));
  } catch (std::bad_alloc const&) {
    state->give_up();
    throw;
  }
}

}  // namespace latchkey
