#include <api/loss_watch.hpp>
#include <engine/guards.hpp>

#include <utility>

namespace latchkey::detail {

// The callback is the user's: what is replaced or unwanted is destroyed outside the mutex.
bool loss_watch::set(lost_callback callback) {
  std::optional<lost_callback> kept(std::move(callback));
  std::scoped_lock const lock(mutex_);
  kept.swap(callback_);
  return told_.has_value();
}

void loss_watch::tell(error_code const& why) {
  {
    std::scoped_lock const lock(mutex_);
    told_ = why;
  }
  stop_.request_stop();
  call_back();
}

void loss_watch::call_back() {
  std::optional<lost_callback> callback;
  error_code why;
  {
    std::scoped_lock const lock(mutex_);
    if (!callback_ || !told_) return;
    callback.swap(callback_);
    why = *told_;
    running_ = std::this_thread::get_id();
  }
  // Whoever releases on another thread waits for the end of this, also if it throws.
  struct end_of_call {
    loss_watch& watch;
    ~end_of_call() {
      {
        std::scoped_lock const lock(watch.mutex_);
        watch.running_ = {};
      }
      watch.changed_.notify_all();
    }
  } const end{*this};
  (*callback)(why);
}

void loss_watch::forget() noexcept {
  std::optional<lost_callback> unused;
  std::scoped_lock const lock(mutex_);
  unused.swap(callback_);
}

void loss_watch::await_callback() noexcept {
  uncancelled const whole;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == std::thread::id() || running_ == std::this_thread::get_id(); });
}

}  // namespace latchkey::detail
