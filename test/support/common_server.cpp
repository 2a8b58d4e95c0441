#include <support/patience.hpp>
#include <support/redis_server.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace latchkey::test {

namespace {

// Fails the program at its very end, if something was left on the server.
struct verdict {
  ~verdict() {
    if (left.empty()) return;
    std::fprintf(stderr, "left on the common server at the end: %s\n", left.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
  }
  std::string left;
};

// When all tests are done, nothing of the clients may be left on it.
struct checked_server : redis_server {
  explicit checked_server(verdict& of_all) : end(of_all) {}
  ~checked_server() {
    if (::getpid() != owner) return;
    try {
      auto look = admin();
      end.left = what_is_left(look);
    } catch (std::exception const& problem) {
      end.left = problem.what();
    }
  }

  verdict& end;
  pid_t const owner = ::getpid();
};

}  // namespace

redis_server& common_server() {
  static verdict end;
  static checked_server server(end);
  return server;
}

std::string new_name() {
  static std::atomic<int> count{0};
  return "lock-" + std::to_string(++count);
}

namespace {

// Counters and numbers stay by design: fencing tokens, the permits of semaphores, the counts of latches. A permit
// without a lease is its owner's for ever, as the key of an expirable semaphore shows.
bool may_stay(std::string const& type, std::string const& key) {
  return type == "string" || (type == "zset" && key.ends_with(":timeout"));
}

std::vector<std::string> keys_for_ever(raw_redis& server) {
  std::vector<std::string> made;
  std::string cursor = "0";
  do {
    auto const page = server.ok("SCAN", cursor, "COUNT", 1'000);
    cursor = page.elements.at(0).text;
    for (auto const& key : page.elements.at(1).elements) {
      if (server.integer("PTTL", key.text) != -1) continue;
      auto const type = server.text("TYPE", key.text);
      if (!may_stay(type, key.text)) made.push_back(key.text + " (" + type + ")");
    }
  } while (cursor != "0");
  return made;
}

}  // namespace

std::string what_is_left(raw_redis& server) {
  std::string made;
  wait_until([&] { return server.clients() == 0; }, patience / 3);
  if (auto const count = server.clients(); count > 0) made += std::to_string(count) + " connections; ";
  for (auto const& channel : server.ok("PUBSUB", "CHANNELS").elements) made += "listeners of " + channel.text + "; ";
  for (auto const& key : keys_for_ever(server)) made += "key " + key + "; ";
  return made;
}

}  // namespace latchkey::test
