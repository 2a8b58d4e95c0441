#pragma once

#include <base/instant.hpp>
#include <wire/kind.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latchkey::detail {

struct owner_state;

// What was released lately, of locks that exclude: a server that takes over may not have heard of it.
class recent_releases {
 public:
  static constexpr milliseconds remembered{10'000};
  static constexpr std::size_t most = 16'384;

  struct entry {
    std::shared_ptr<kind const> which;
    std::string name;
    std::uint64_t owner = 0;  // whose number the server had it under
    unsigned char mode = 0;
    instant at{};
    instant over_at{};  // by then its lease has ended
  };

  void add(owner_state const& one, unsigned char mode, instant now);
  // Something of it may be held again.
  void forget(owner_state const& one, unsigned char mode);
  bool has(owner_state const& one, unsigned char mode) const;

  bool any(instant now) const { return !all_.empty() && after(all_.back().at, remembered) > now; }
  // What is not too old. It stays: the next server that takes over may know as little of it.
  std::vector<entry> lately(instant now);

 private:
  static std::string key_of(std::string_view name, std::uint64_t owner, unsigned char mode);
  void drop_oldest();
  void forget_old(instant now);

  std::list<entry> all_;  // oldest first
  std::unordered_map<std::string, std::list<entry>::iterator> by_key_;
};

}  // namespace latchkey::detail
