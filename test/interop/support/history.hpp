#pragma once

#include <interop/support/interop_world.hpp>
#include <support/raw_redis.hpp>

#include <functional>
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

// One step of a history, for instance `a lock`, `b2 try_lock 100 -1`, `a read_lock.unlock`: who (two processes, each
// with the threads a, a2 and a3), the operation, of which kind if it is not the history's, arguments. Parts between
// semicolons are one step: nobody looks in between. `b begin lock` does not wait, `b finish` does. `pause 200` lets
// time pass; `expire` waits until the keys with a time to live of less than a second are gone. `$1` is the first id of
// a permit that was answered, and so on.
// After a step marked with `~` latchkey may leave a longer time to live: it never shortens, and a release that leaves
// holds renews them. In one marked with `!` it publishes other messages than Redisson; docs/interop.md says which. In
// one marked with `?` it is a matter of time which commands it takes.
struct history {
  std::string kind;
  std::vector<std::string> steps;
  int names = 1;
  std::string title{};
};

std::vector<history> const& histories();

// A red lock shares a short wait among its members: on a busy machine the time is up before enough have answered in its
// last round, which is no answer of "busy". What follows differs, too.
inline bool late(history const& what, std::size_t step, std::string const& answered, std::string const& reference) {
  return what.kind == "red_lock" && what.steps[step].starts_with('?') && answered == "failed;" && reference == "false;";
}

// What a step left behind.
struct after_step {
  std::vector<state_dump> states;  // of each server
  std::string answered;            // ids made symbolic
};

// Both actors of a history, and a look at the servers that they use.
class stage {
 public:
  stage(peer& a, peer& b, std::vector<redis_server*> servers);

  // The state before anything, and after each step. `watch` is called after each step, with its number.
  std::vector<after_step> play(history const& what, std::function<void(std::size_t)> const& watch = {});

  symbols const& table() const { return table_; }

 private:
  void learn(peer& who, std::string const& letter);
  std::string make(history const& what, std::string const& step);
  std::string make_part(history const& what, std::string const& part);
  std::string call(history const& what, std::vector<std::string> words);
  std::string symbolic(answer const& got);
  void expire();
  std::vector<state_dump> look();
  std::size_t channels();

  std::map<std::string, peer*> actors_;
  std::vector<redis_server*> servers_;
  symbols table_;
  std::vector<std::string> permits_;
  std::map<std::string, std::future<answer>> pending_;
};

}  // namespace latchkey::test
