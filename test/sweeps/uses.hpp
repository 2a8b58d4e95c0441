#pragma once

#include <latchkey/client.hpp>
#include <latchkey/count_down_latch.hpp>
#include <latchkey/permit_semaphore.hpp>
#include <latchkey/semaphore.hpp>
#include <support/configs.hpp>
#include <support/kinds.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <string>
#include <vector>

namespace latchkey::test {

// Something that a program does with one kind, from nothing to nothing.
struct use {
  std::string kind;
  std::string what;
  std::function<void(clients const&, std::string const& name)> run;
  // Holds nobody anything of this name any more?
  std::function<bool(clients const&, std::string const& name)> is_free;
  bool is_lock = false;
};

// Every operation of every kind: for sweeps in which something fails at every step.
std::vector<use> const& every_use();

// A call that may have to wait: what must be there before, how it begins, and what lets it end.
struct waiting_call {
  std::string kind;
  // Makes it wait; what it returns lets it go on.
  std::function<std::function<void()>(clients const& theirs, std::string const& name)> occupy;
  std::function<void(clients const&, std::string const& name, asio::cancellation_slot, std::function<void(error_code)>)>
      begin;
  std::function<bool(clients const&, std::string const& name)> is_free;
  // Not empty: what was granted stays taken until this is done.
  std::function<void(clients const& theirs, std::string const& name)> give_back{};
};

std::vector<waiting_call> const& every_waiting_call();

// How long they wait at most: for a lock that nobody has, so only where there is no server.
inline milliseconds sweep_wait = patience;

// How long a hold of these lasts when nobody gives it back.
inline constexpr milliseconds sweep_lease = 400ms * slowness;

// What is left behind is gone soon, and nothing takes long that fails.
inline config sweep_config() {
  config settings;
  settings.lock_watchdog_timeout = sweep_lease;
  settings.connect_timeout = 400ms * slowness;
  settings.timeout = 400ms * slowness;
  settings.close_timeout = 400ms * slowness;
  settings.retry_delay = 20ms;
  settings.retry_attempts = 1;
  return settings;
}

inline clients one_client(config settings = sweep_config()) {
  clients made;
  made.emplace_back(common_server().uri(), std::move(settings));
  return made;
}

// What the server still has of these names ends with its lease.
inline bool all_free(use const& what, std::vector<std::string> const& names) {
  auto const fresh = one_client();
  for (auto const& name : names)
    if (what.is_free && !wait_until([&] { return what.is_free(fresh, name); })) return false;
  return true;
}

}  // namespace latchkey::test
