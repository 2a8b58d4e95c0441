#pragma once

#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/adoptions.hpp>
#include <support/unit/walks.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// Walks at random through failovers: calls, lost connections, replicas that lag and masters that are replaced, in any
// order, by clients who hear of it at different times. What the new master has is a beginning of what the old one did.
// With min_synced_replicas of all, and one failover at a time, nobody ever believes to hold what somebody else does
// (docs/safety.md, F1 to F4, F7, F8). Each seed has a kind of lock.
//
// Here are callers and connections; what befalls the servers, each topology says.
class failover_walk {
 public:
  static constexpr std::size_t clients = 3;
  static constexpr std::size_t replicas = 2;
  static constexpr std::array<char const*, 3> names{"k", "other", "{k}2"};
  static constexpr int moves = 160;
  static constexpr std::uint64_t most_steps = 24;  // between two of them
  static constexpr int most_failovers = 6;
  static constexpr milliseconds most_skew{200};
  static constexpr milliseconds longest_lease{20'500};

  static constexpr int unasked = 100;  // no replica is asked

  // `needed` replicas confirm each grant; of less than zero, all. `exclusive`: two holders are looked for.
  failover_walk(std::uint64_t seed, int needed, bool exclusive, world::known how);
  virtual ~failover_walk() = default;

  void play();

  int failovers() const { return failovers_; }
  std::size_t granted() const { return granted_; }
  std::size_t adopted() const { return granted(task::type::adopt); }

 protected:
  virtual void befall_servers() = 0;
  virtual void heal() = 0;
  // The one that has the name, if that is certain.
  virtual stepped_server* master_of(std::string const& name) = 0;
  // All holds of clients that servers still show.
  virtual std::vector<std::string> ghosts() = 0;
  // Before whatever the server runs. The answer: what it says instead.
  virtual std::string before(stepped_server& one, stepped_server::words const& command) = 0;

  void watch(stepped_server& one);
  // The clock of the next master may be another one, and what is copied is a time of day.
  void promote_to(stepped_server& next, stepped_server const& from, model::keyspace const& copy);
  bool step();

  world w_;
  int failovers_ = 0;

 private:
  std::size_t granted(task::type what) const;
  void look();
  // The master shows what is believed, whoever it is: so many holds, for so long.
  void look_at_masters();
  void look_for_ghosts();
  void call();
  void fault();
  void end();
  // By how much it is ahead of the slowest one.
  std::int64_t clock_of(stepped_server const& one);

  detail::kind const& kind_;
  bool const all_confirm_;  // every replica
  std::optional<adoptions> adoptions_;
  std::size_t granted_ = 0;  // before the end
  std::map<stepped_server const*, std::int64_t> clocks_;
};

// What another master does not have, but for what was released.
bool lost_more_than_releases(model::keyspace& was, model::keyspace& copy);

template <class Walk>
void walk_failovers(int needed) {
  seeds const all(400 / slowness);
  std::uint64_t failovers = 0, granted = 0, adopted = 0;
  all.each([&](std::uint64_t seed) {
    Walk one(seed, needed, needed < 0);
    one.play();
    failovers += static_cast<std::uint64_t>(one.failovers());
    granted += one.granted();
    adopted += one.adopted();
  });
  CHECK((all.one() || failovers > all.count() / 2));
  CHECK((all.one() || granted > 2 * all.count()));
  CHECK((all.count() < 400 || adopted > all.count() / 100));
  if (all.more_than_usual())
    WARN(all.count() << " walks, " << failovers << " failovers, " << granted << " grants, " << adopted << " adoptions");
}

// What walks look for is there to be found: with one replica that has it another one may be promoted.
template <class Walk>
bool finds_two_holders(std::uint64_t most) {
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    try {
      Walk(seed, 0, true).play();
    } catch (violation const& broken) {
      return std::string_view(broken.what()).find("two valid holders") != std::string_view::npos;
    }
  }
  return false;
}

}  // namespace latchkey::test
