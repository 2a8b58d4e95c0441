#include <torture/kinds.hpp>
#include <torture/remains.hpp>

#include <algorithm>
#include <string_view>
#include <thread>

namespace latchkey::torture {

namespace {

// What has no lease and is there to stay: counters of tokens, permits, and latches whose parties were killed.
bool stays(std::string_view key) {
  return key.starts_with("redisson_lock_token:") || key.starts_with("semaphore-") || key.starts_with("latch-") ||
         key.starts_with("permit_semaphore-");
}

// By these keys repeated requests are recognised: 20 s, which is longer than a lease and said in the manual.
bool is_mark(std::string_view key) { return key.starts_with("latchkey_request:"); }

constexpr std::int64_t mark_time = 20'000;

std::vector<std::string> keys_like(test::raw_redis& admin, std::string const& pattern) {
  std::vector<std::string> found;
  std::string cursor = "0";
  do {
    auto const answer = admin.ok("SCAN", cursor, "MATCH", pattern, "COUNT", 1'000);
    cursor = answer.elements.at(0).text;
    for (auto const& one : answer.elements.at(1).elements) found.push_back(one.text);
  } while (cursor != "0");
  return found;
}

std::vector<std::string> wrong_keys(test::raw_redis& admin) {
  std::vector<std::string> found;
  for (auto const& one : keys_like(admin, "*")) {
    if (stays(one)) continue;
    auto const left = admin.integer("PTTL", one);
    if (left == -2 || (is_mark(one) && left >= 0 && left <= mark_time)) continue;
    found.push_back("the key " + one + ", time to live " + std::to_string(left) + " ms");
  }
  return found;
}

// Permits whose lease is over come back when somebody asks.
std::vector<std::string> missing_permits(test::redis_server const& server, test::raw_redis& admin) {
  std::vector<std::string> found;
  client const own(server.uri());
  for (auto const& one : keys_like(admin, "permit_semaphore-*"))
    if (auto const free = own.get_permit_semaphore(one).available_permits(); free != permits)
      found.push_back(one + " has " + std::to_string(free) + " permits free");
  return found;
}

std::vector<std::string> look(test::redis_server const& server) {
  auto admin = server.admin();
  auto found = missing_permits(server, admin);
  auto const more = wrong_keys(admin);
  found.insert(found.end(), more.begin(), more.end());
  for (auto const& one : admin.ok("PUBSUB", "CHANNELS").elements) found.push_back("a subscription of " + one.text);
  if (auto const others = admin.clients("user=worker"); others > 0)
    found.push_back(std::to_string(others) + " connections of workers");
  return found;
}

// The checker knows how many of their permits killed processes took with them.
void note_pools(stage& on) {
  auto admin = on.server(0).admin();
  std::string const prefix = "semaphore-";
  auto const kind = [] {
    auto const& all = torture_kinds();
    return std::find_if(all.begin(), all.end(), [](auto const& one) { return one.name == "semaphore"; }) - all.begin();
  }();
  for (auto const& one : keys_like(admin, prefix + "*")) {
    record line;
    line.what = what::pool;
    line.kind = static_cast<std::uint8_t>(kind);
    line.lock = static_cast<std::uint32_t>(std::stoul(one.substr(prefix.size())));
    line.a = std::stoll(admin.text("GET", one));
    on.log().write(line);
  }
}

}  // namespace

std::vector<std::string> find_remains(stage& on) {
  // What was killed with a request on the way may hold for one lease of up to two watchdog times, and in a queue for
  // as long as the waiters of a fair lock are given.
  auto const end = now() + on.run().lease.count() * 5 * ms;
  std::vector<std::string> found;
  do {
    std::this_thread::sleep_for(milliseconds(50));
    found.clear();
    for (int s = 0; s < on.servers(); ++s) {
      auto some = look(on.server(s));
      for (auto& one : some) found.push_back("server " + std::to_string(s) + ": " + std::move(one));
    }
  } while (!found.empty() && now() < end);
  note_pools(on);
  return found;
}

}  // namespace latchkey::torture
