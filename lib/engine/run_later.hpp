#pragma once

#include <base/clock.hpp>
#include <engine/core.hpp>

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace latchkey::detail {

// Runs the function where the client's sockets are when the time has come; a cancelled one is destroyed unrun. The
// timer lives in its own handler, so that it never outlives the executor.
template <class F>
std::weak_ptr<asio::steady_timer> run_later(core const& engine, instant when, F function) {
  auto const timer = std::make_shared<asio::steady_timer>(engine.threads().io_executor());
  // A year at a time is enough, and cannot overflow.
  timer->expires_after(std::clamp<nanoseconds>(when - boot_now(), nanoseconds(0), std::chrono::hours(24 * 365)));
  timer->async_wait([timer, f = std::move(function)](error_code const& cancelled) mutable {
    if (!cancelled) f();
  });
  return timer;
}

inline void cancel_timer(std::weak_ptr<asio::steady_timer>& one) {
  if (auto const timer = one.lock()) timer->cancel();
  one.reset();
}

}  // namespace latchkey::detail
