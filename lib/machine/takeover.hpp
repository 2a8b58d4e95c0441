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
#include <unordered_map>
#include <vector>

namespace latchkey::detail {

class name_machine;
struct home;
struct owner_state;

// Owners, by what servers know them as, of whom a server that was replaced may still run a request. If it becomes the
// master again, behind what others have done meanwhile, that may end a hold which began after it: docs/safety.md,
// "After a failover", rule 8.
class barred_owners {
 public:
  static std::string key_of(owner_state const& state);

  bool empty() const { return all_.empty(); }
  bool has(owner_state const& state) const { return !all_.empty() && all_.contains(key_of(state)); }
  void add(std::string const& key) { ++all_[key]; }
  void remove(std::string const& key);

 private:
  std::unordered_map<std::string, unsigned> all_;  // how many requests of each
};

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

  void add(home const& at_home, owner_state const& state, unsigned char mode, instant now);
  // Something of it is held again, at whatever server.
  void forget(owner_state const& state, unsigned char mode) noexcept;
  bool has(owner_state const& state, unsigned char mode) const;

  bool any(home const& at_home, instant now) const;
  // It is released again as soon as that can be.
  void owe(entry const& released);
  bool owes_any() const { return owed_ > 0; }
  bool take_owed(owner_state const& state, unsigned char mode);

  // What is not too old. It stays: the next server that takes over may know as little of it.
  std::vector<entry> lately(home const& at_home, instant now) const;

 private:
  // Without the kind: kinds share data. The name is that of the entry.
  using key = std::tuple<std::string_view, std::uint64_t, unsigned char>;
  static key key_of(entry const& released) { return {released.name, released.owner, released.mode}; }
  static key key_of(owner_state const& state, unsigned char mode);
  void erase(std::list<entry>::iterator released);
  void drop_oldest() { erase(all_.begin()); }

  std::list<entry> all_;  // oldest first
  std::map<key, std::list<entry>::iterator> by_key_;
  std::size_t owed_ = 0;
};

// What a name does when another server takes over its data, and perhaps has not heard of the last of what was done.
struct takeover {
  // Every hold is looked for there before anything else is asked, whoever has a lease of his own included.
  static void look_after_holds(name_machine& name);
  // Another server of the cluster has it from now on. What is under way is answered where it was sent: what ran there
  // came along.
  static void move(name_machine& name, home& to);
  // An owner who had released it is to have nothing there.
  static void release_again(name_machine& name, recent_releases::entry const& was);
  // A server that was replaced has not answered this request. If it becomes the master again, or has been, its owner is
  // to have nothing there but what he holds.
  static void may_run_later(owner_state& state, home const& at);
  // What could not be released again as long as its owner stood under another one's field, or had another kind of the
  // lock in use.
  static void catch_up(owner_state& state);
  // No server has it any more: what waits for its messages there goes first.
  static void end(name_machine& name);
  // What waits for the answer of a server that was replaced keeps no release waiting: an extension is not made, and who
  // enters again does so afterwards.
  static void make_way(owner_state& state);
  // For the first release that stands behind it, which is the next one then.
  static void let_release_pass(owner_state& state);
};

}  // namespace latchkey::detail
