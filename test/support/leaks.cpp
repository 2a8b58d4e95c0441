#include <support/leaks.hpp>
#include <support/patience.hpp>

#include <vector>

namespace latchkey::test {

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
