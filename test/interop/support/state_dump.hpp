#pragma once

#include <support/raw_redis.hpp>

#include <map>
#include <string>
#include <vector>

namespace latchkey::test {

// Everything on a server at one moment, in words that do not depend on who made it: ids and times made symbolic.
struct state_dump {
  struct key_state {
    std::string type;
    std::vector<std::string> content;           // fields and values, members, elements, as they stand
    std::map<std::string, long long> instants;  // what stands for a time: the key's own expiry under "", scores
    bool operator==(key_state const&) const = default;
  };
  std::map<std::string, key_state> keys;
  long long taken_ms = 0;  // the server's clock
};

// What is to be replaced by what, longest first.
using symbols = std::vector<std::pair<std::string, std::string>>;
std::string with_symbols(std::string text, symbols const& table);

// Keys with this prefix are left out: Redisson deletes them with a command of their own, some time later.
inline constexpr std::string_view unlock_latch = "redisson_unlock_latch";

// The same for what latchkey alone keeps and reads: requests that must not run twice, claims of its waiters.
inline constexpr std::string_view own_keys = "latchkey_";

state_dump dump(raw_redis& server, symbols const& table);

// The states of a server after each step of a history, as far as it has come, and before the first.
struct moment {
  std::vector<state_dump const*> states;
  state_dump const& before() const { return *states[states.size() - 2]; }
  state_dump const& after() const { return *states.back(); }
};

// The difference between what two last steps left behind; empty: there is none. Times agree, up to 50 ms, if they may
// have been written with the same distance from the time of writing, scores also if they count from the same lease.
// With `longer_is_fine` the first may end later, and times may count from what was before the step.
std::string difference(moment const& one, moment const& other, bool longer_is_fine = false);

// For people and for files: one line for each key. Times are rounded and counted from the moment of the dump.
std::string to_text(state_dump const& state);

}  // namespace latchkey::test
