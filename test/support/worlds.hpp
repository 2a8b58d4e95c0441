#pragma once

#include <latchkey/client.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <string>

namespace latchkey::test {

// A client of the common server, its events, a look at the server, and a lock that nobody has used before.
struct common_world {
  event_log log;
  raw_redis admin = common_server().admin();
  client own{common_server().uri(), steady_config(log)};
  std::string name = new_name();
  distributed_lock lock = own.get_lock(name);

  std::string field(owner who) const { return own.id() + ":" + to_string(who); }
};

// The same with a server of its own, for tests that change settings of the server or break it.
struct private_world {
  explicit private_world(config settings = steady_config(), redis_options options = {})
      : server(std::move(options)), admin(server.admin()), own(server.uri(), listening(std::move(settings))) {}

  config listening(config settings) const {
    settings.on_event = log.callback();
    return settings;
  }
  std::string field(owner who) const { return own.id() + ":" + to_string(who); }

  event_log log;
  redis_server server;
  raw_redis admin;
  client own;
  std::string name = "lock";
  distributed_lock lock = own.get_lock(name);
};

}  // namespace latchkey::test
