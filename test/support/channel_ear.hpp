#pragma once

#include <support/redis_server.hpp>

#include <string>
#include <string_view>

namespace latchkey::test {

// Hears what is said on a channel, from its making on.
class channel_ear {
 public:
  channel_ear(redis_server const& server, std::string_view channel) : socket_(server.admin()) {
    socket_.ok("SUBSCRIBE", channel);
  }
  // The next payload; throws if none comes in time.
  std::string next() { return socket_.receive().elements.at(2).text; }

 private:
  raw_redis socket_;
};

}  // namespace latchkey::test
