#pragma once

#include <base/instant.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

// Many whole clients, a large cluster, and the death of one of its masters, in virtual time: docs/sizing.md.
namespace latchkey::scale {

using detail::nanoseconds;

struct wishes {
  std::size_t clients = 1'000;
  std::size_t names = 100'000;
  std::size_t shards = 50;
  std::int64_t elected_after = 2'000;  // milliseconds from the death of a master to the election of its replica
  std::int64_t warm_up = 20'000;       // before it, so that what clients do once is over
  bool silent = false;                 // its machine is gone, too: nobody is told that a connection has ended
  std::uint64_t seed = 1;
};

struct sample {
  std::vector<nanoseconds> all;

  void add(nanoseconds one) { all.push_back(one); }
  // 0.5: the median; 0 of none.
  double ms(double part) const;
};

// What servers were sent, by sort: the name of a script, or the command.
struct work {
  std::map<std::string, std::uint64_t, std::less<>> sorts;
  nanoseconds busy{};

  std::uint64_t commands() const {
    std::uint64_t sum = 0;
    for (auto const& [name, count] : sorts) sum += count;
    return sum;
  }
  std::uint64_t of(std::string_view sort) const {
    auto const found = sorts.find(sort);
    return found == sorts.end() ? 0 : found->second;
  }
};

// One server, tenth of a second by tenth.
struct load {
  std::vector<std::uint64_t> commands;
  std::vector<nanoseconds> busy;

  void add(nanoseconds at, nanoseconds cost);
  // The most in so many tenths in a row, of those in [from, to).
  std::uint64_t most_commands(std::size_t tenths, std::size_t from, std::size_t to) const;
  nanoseconds most_busy(std::size_t tenths, std::size_t from, std::size_t to) const;
};

// The parts of a run that are counted apart.
enum class part : unsigned char {
  usual,     // the ten seconds before the death
  outage,    // until the election
  storm,     // the second from there on
  aftermath  // the nine after that
};
inline constexpr std::size_t parts = 4;

struct figures {
  // All of the failed shard, if nothing else is said.
  std::size_t held = 0, wanted = 0;  // names, when its master died
  nanoseconds first_grant{};         // since the death
  sample asserted;                   // a name that was held: until a command for it runs at the new master
  sample asked;                      // a name that was waited for: until a try for it runs there
  sample granted;                    // ... until somebody has it: with the rest of its holder's work
  sample idle_before, idle;          // nobody wants to hold it any more and somebody waits: until his grant; from the
                                     // election on
  std::array<work, parts> here{}, elsewhere{};  // elsewhere: all other servers together
  load master, other;                           // the old master and the new one; the other one that was busiest
  nanoseconds longest_queue{};                  // a command at the new master
  nanoseconds died{}, elected{};                // since the beginning
  std::size_t connections = 0;                  // of all clients, when it died
  std::size_t grants = 0;                       // anywhere
  std::size_t lost = 0, two_holders = 0, failed_calls = 0;  // anywhere
  std::size_t gave_up = 0;    // releases whose callers were told that nobody answers; they go on in the background
  std::size_t forgotten = 0;  // names that were waited for and that nobody was granted since

  work const& at(part which) const { return here[static_cast<std::size_t>(which)]; }
  work const& others(part which) const { return elsewhere[static_cast<std::size_t>(which)]; }
};

// What clients and servers do follows from the seed.
figures play(wishes const& what);

// The program: `scripts/simulate --scale`. The words are those behind it.
int run(int count, char const* const* words);

}  // namespace latchkey::scale
