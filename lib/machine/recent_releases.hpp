#pragma once

#include <base/instant.hpp>
#include <wire/kind.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::detail {

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
  };

  void add(kind const& which, std::string const& name, std::uint64_t owner, unsigned char mode, instant now);
  bool any(instant now) const { return !all_.empty() && after(all_.back().at, remembered) > now; }
  // What is not too old. It stays: the next server that takes over may know as little of it.
  std::vector<entry> lately(instant now);

 private:
  void forget_old(instant now);

  std::deque<entry> all_;  // oldest first
};

}  // namespace latchkey::detail
