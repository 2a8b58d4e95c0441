#pragma once

#include <base/instant.hpp>
#include <wire/kind.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
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

// What this client has released of locks that exclude, as long as a server that takes over may not have heard of it:
// docs/safety.md, "After a failover", rule 4. Only remembers; `takeover` releases again.
class recent_releases {
 public:
  // A server that is still the master so long after it answered has passed it on, and an election before that is known
  // to whoever is asked then.
  static constexpr milliseconds margin{10'000};
  static constexpr std::size_t most = 16'384;  // of more the oldest are forgotten

  struct entry {
    home const* ran_at;  // where it was released
    home const* of;      // where its name is: another one, if it ran behind an ASK
    kind_ptr which;
    std::string name;
    std::uint64_t owner;  // whose number the server had it under
    unsigned char mode;
    instant at;
    instant over_at;    // by then its lease has ended
    bool owed = false;  // it was to be released again, and could not be yet
  };

  static entry entry_of(owner_state const& state, unsigned char mode, home const& ran_at, instant now);
  void add(entry made);
  // Something of it is held again, at whatever server.
  void forget(owner_state const& state, unsigned char mode) noexcept;
  bool has(owner_state const& state, unsigned char mode) const;

  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  // Within the margin: who does not reach its server is in a hurry to hear of another one.
  bool any_lately(home const& ran_at, instant now) const;

  // It is released again as soon as that can be.
  void owe(entry const& released);
  bool owes_any() const { return owed_ > 0; }
  bool take_owed(owner_state const& state, unsigned char mode);

  // --- who has taken over, or not ---
  // Another server may have less of it. It stays: the next one that takes over may know as little.
  std::vector<entry> at(home const& at) const;
  // Names go where this says: what of them has gone elsewhere.
  std::vector<entry> move(std::function<home&(std::string_view)> const& where);
  // This one is not asked any more.
  void leave(home const& ran_at);
  // This one was the master when it was asked, by its own word and that of others.
  void confirm(home const& ran_at, instant asked);
  // Of what has ended by its lease nothing can come back.
  void forget_ended(instant now);

 private:
  // Without the kind: kinds share data. The name is that of the entry.
  using key = std::tuple<std::string_view, std::uint64_t, unsigned char>;
  using position = std::list<entry>::iterator;
  static key key_of(entry const& released) { return {released.name, released.owner, released.mode}; }
  static key key_of(owner_state const& state, unsigned char mode);
  position erase(position released);

  std::list<entry> all_;  // oldest first
  std::map<key, position> by_key_;
  std::size_t owed_ = 0;
};

}  // namespace latchkey::detail
