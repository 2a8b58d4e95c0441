#pragma once

#include <latchkey/config.hpp>
#include <support/event_log.hpp>
#include <support/patience.hpp>

namespace latchkey::test {

// A lease that is soon over, and not before its grant was answered even on a busy machine.
inline constexpr milliseconds brief_lease = 300ms + 100ms * slowness;

// A wait that is soon over, and not before its try was answered even on a busy machine, if the client is connected.
inline constexpr milliseconds brief_wait = 100ms + 50ms * slowness;

// For tests in which a hold stays: nothing of it is in a hurry on a slow machine.
inline config steady_config() {
  config settings;
  settings.lock_watchdog_timeout = 30s;
  settings.connect_timeout = 5s * slowness;
  settings.timeout = 5s * slowness;
  settings.close_timeout = 2s * slowness;
  settings.retry_delay = 100ms;
  return settings;
}

// However long the test takes, no health ping comes between what it counts.
inline config unpinged_config() {
  config settings = steady_config();
  settings.ping_interval = 0ms;
  return settings;
}

inline config heard_by(event_log const& log, config settings) {
  settings.on_event = log.callback();
  return settings;
}

inline config steady_config(event_log const& log) { return heard_by(log, steady_config()); }

// For tests in which something runs out.
inline config quick_config() {
  config settings;
  settings.lock_watchdog_timeout = 600ms;
  settings.connect_timeout = 1s;
  settings.timeout = 500ms;
  settings.close_timeout = 1s;
  settings.retry_delay = 100ms;
  return settings;
}

inline config quick_config(event_log const& log) { return heard_by(log, quick_config()); }

}  // namespace latchkey::test
