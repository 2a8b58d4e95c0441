#include <api/lease_state.hpp>

namespace latchkey::detail {

lease_state::lease_state(std::shared_ptr<lock_key const> key, owner who, acquire_options const& options)
    : key_(std::move(key)), owner_(who) {
  context = options.context;
  lock_delay = options.lock_delay;
  if (options.progress_within) progress_within = to_nanoseconds(*options.progress_within);
}

// A client that closes refuses the release, and may be about to tell of the loss.
lease_state::~lease_state() {
  if (parts && !key_->engine->forked()) parts->unlink();
}

void lease_state::granted(operation const& one) {
  hold_ = one.hold;
  if (one.token != 0) token_ = one.token;
}

bool lease_state::claim_release() noexcept {
  if (released_.exchange(true)) return false;
  std::optional<lost_callback> unused;
  {
    std::scoped_lock const lock(mutex_);
    unused.swap(callback_);
  }
  return true;  // and the callback, which is the user's, is destroyed outside the mutex
}

void lease_state::await_callback() noexcept {
  uncancelled const whole;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == std::thread::id() || running_ == std::this_thread::get_id(); });
}

void lease_state::drop() noexcept {
  if (!key_->engine->forked() && claim_release()) give_up();
}

void lease_state::give_up() noexcept {
  key_->drop(owner_access::number(owner_), hold_);
  await_callback();
}

void lease_state::set_callback(lost_callback callback) {
  std::optional<lost_callback> one(std::move(callback));
  {
    std::scoped_lock const lock(mutex_);
    if (released()) return;
    one.swap(callback_);
    if (!told_) return;
  }
  key_->engine->post([self = shared_from_this()] { self->call_back(); });
}

void lease_state::tell(error_code const& why) {
  {
    std::scoped_lock const lock(mutex_);
    if (released()) return;
    told_ = true;
    why_ = why;
  }
  stop_.request_stop();
  call_back();
}

void lease_state::call_back() {
  std::optional<lost_callback> one;
  {
    std::scoped_lock const lock(mutex_);
    if (released() || !callback_) return;
    one.swap(callback_);
    running_ = std::this_thread::get_id();
  }
  // Whoever releases on another thread waits for the end of this, also if it throws.
  struct end_of_call {
    lease_state& state;
    ~end_of_call() {
      {
        std::scoped_lock const lock(state.mutex_);
        state.running_ = {};
      }
      state.changed_.notify_all();
    }
  } const end{*this};
  (*one)(why_);
}

}  // namespace latchkey::detail
