#pragma once

#include <latchkey/permit_semaphore.hpp>
#include <support/worlds.hpp>

#include <cstdio>
#include <map>
#include <string>

namespace latchkey::test {

// The score of a permit without a lease.
inline constexpr auto never = "922337203685477";

inline std::string hex_of(std::string const& bytes) {
  std::string made;
  for (char const c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    made += digits;
  }
  return made;
}

// A semaphore of permits with ids that nobody has used before, and what the server has of it.
struct permit_world : common_world {
  permit_semaphore permits = own.get_permit_semaphore(name);
  std::string timeouts = "{" + name + "}:timeout";
  std::string channel = "redisson_sc:{" + name + "}";

  std::string free() { return admin.text("GET", name); }
  // Ids as users see them, with their scores.
  std::map<std::string, std::string> taken() {
    std::map<std::string, std::string> made;
    auto const words = admin.ok("ZRANGE", timeouts, "0", "-1", "WITHSCORES").elements;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) made[hex_of(words[i].text)] = words[i + 1].text;
    return made;
  }
  std::int64_t server_ms() {
    auto const time = admin.ok("TIME").elements;
    return std::stoll(time[0].text) * 1000 + std::stoll(time[1].text) / 1000;
  }
};

}  // namespace latchkey::test
