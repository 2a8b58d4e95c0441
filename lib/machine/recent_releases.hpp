#pragma once

#include <base/instant.hpp>
#include <wire/kind.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace latchkey::detail {

struct home;
struct owner_state;

// What this client has released lately, of locks that exclude: a server that takes over may not have heard of it.
class recent_releases {
 public:
  static constexpr milliseconds remembered{10'000};
  static constexpr std::size_t most = 16'384;

  struct entry {
    home const* at_home;  // where it was released
    std::shared_ptr<kind const> which;
    std::string name;
    std::uint64_t owner;  // whose number the server had it under
    unsigned char mode;
    instant at;
    instant over_at;    // by then its lease has ended
    bool owed = false;  // it was to be released again, and could not be yet
  };

  void add(home const& at_home, owner_state const& one, unsigned char mode, instant now);
  // Something of it is held again, at whatever server.
  void forget(owner_state const& one, unsigned char mode) noexcept;
  bool has(owner_state const& one, unsigned char mode) const;

  bool any(home const& at_home, instant now) const;
  // It is released again as soon as that can be.
  void owe(entry const& one);
  bool owes_any() const { return owed_ > 0; }
  bool take_owed(owner_state const& one, unsigned char mode);

  // What is not too old. It stays: the next server that takes over may know as little of it.
  std::vector<entry> lately(home const& at_home, instant now) const;

 private:
  // Without the kind: kinds share data. The name is that of the entry.
  using key = std::tuple<std::string_view, std::uint64_t, unsigned char>;
  static key key_of(entry const& one) { return {one.name, one.owner, one.mode}; }
  static key key_of(owner_state const& one, unsigned char mode);
  void erase(std::list<entry>::iterator one);
  void drop_oldest() { erase(all_.begin()); }

  std::list<entry> all_;  // oldest first
  std::map<key, std::list<entry>::iterator> by_key_;
  std::size_t owed_ = 0;
};

}  // namespace latchkey::detail
