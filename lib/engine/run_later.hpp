#pragma once

#include <base/clock.hpp>
#include <engine/core.hpp>

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace latchkey::detail {

// Something that runs when its time has come. Its timer lives in its own handler, so that it never outlives the
// executor.
class later : public std::enable_shared_from_this<later> {
 public:
  later(core const& engine, instant when) : timer_(engine.threads().io_executor()), when_(when) {}
  virtual ~later() = default;

  void arm() {
    std::scoped_lock const guard(mutex_);
    if (cancelled_) return;
    // A year at a time is enough, and cannot overflow.
    timer_.expires_after(
        std::clamp<nanoseconds>(when_ - boot_now(), nanoseconds(0), longest_sleep(std::chrono::hours(24 * 365))));
    timer_.async_wait([self = shared_from_this()](error_code const& cancelled) {
      if (cancelled) return;
      if (boot_now() < self->when_) return self->arm();
      self->run();
    });
  }
  void cancel() {
    std::scoped_lock const guard(mutex_);
    cancelled_ = true;
    timer_.cancel();
  }

 private:
  virtual void run() = 0;

  std::mutex mutex_;
  asio::steady_timer timer_;
  instant const when_;
  bool cancelled_ = false;
};

// Runs the function where the client's sockets are when the time has come; a cancelled one is destroyed unrun.
template <class F>
std::weak_ptr<later> run_later(core const& engine, instant when, F function) {
  struct made final : later {
    made(core const& whose, instant at, F&& what) : later(whose, at), f(std::move(what)) {}
    void run() override { f(); }
    F f;
  };
  auto const later = std::make_shared<made>(engine, when, std::move(function));
  later->arm();
  return later;
}

inline void cancel_timer(std::weak_ptr<later>& later) {
  if (auto const timer = later.lock()) timer->cancel();
  later.reset();
}

}  // namespace latchkey::detail
