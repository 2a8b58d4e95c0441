#pragma once

#include <support/configs.hpp>
#include <support/redis_server.hpp>
#include <sweeps/uses.hpp>

namespace latchkey::test {

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
