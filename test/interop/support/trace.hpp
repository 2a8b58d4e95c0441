#pragma once

#include <interop/support/history.hpp>
#include <support/redis_server.hpp>

#include <string>
#include <vector>

namespace latchkey::test {

// What clients and their scripts did on a server, as MONITOR tells it.
class monitor {
 public:
  explicit monitor(redis_server& server);

  // A line for each command since the last call: of clients as it is, of a script with two spaces before it. Left out
  // are what admin connections did, and commands that only concern a connection. Ids and times are made symbolic.
  std::vector<std::string> read(symbols const& table);

 private:
  raw_redis admin_;
  raw_redis listening_;
  int last_mark_ = 0;
};

// What one library sent in one step of a history and what it left behind, in lines of words.
struct traced_step {
  std::string text;
  std::vector<std::string> commands;
  std::vector<std::string> state;
  std::string answered;
};

// Plays a history with both actors and listens.
std::vector<traced_step> traced(history const& what, peer& a, peer& b, std::vector<redis_server*> const& servers);

// The same from a file of test/interop/traces, which record-traces writes. Of ours only the commands: the answers and
// the states are those of Redisson.
struct trace_file {
  std::vector<traced_step> redisson;
  std::vector<traced_step> ours;
};
trace_file read_trace(history const& what);
void write_trace(history const& what, trace_file const& content);

// The commands that publish.
std::vector<std::string> messages_in(std::vector<std::string> const& commands);

// latchkey's holder gives back a lease at its end, by its own clock; whether the server ends it before is chance.
inline bool by_chance(std::string const& step) { return step == "expire" || step.starts_with('?'); }
inline bool other_messages(std::string const& step) { return step.starts_with('!') || step.starts_with("~!"); }

// The commands that change something, each with what its script did. How often a waiter looks in vain, and
// whether its client still listens from the last time, is a matter of time.
std::vector<std::vector<std::string>> changes_in(std::vector<traced_step> const& steps);

// Which of these are not among the others.
std::string missing(std::vector<std::vector<std::string>> const& wanted,
                    std::vector<std::vector<std::string>> const& among);

// The first difference, word by word; numbers of some size may differ by what a slow machine adds to a time.
std::string difference(std::vector<std::string> const& got, std::vector<std::string> const& wanted);

}  // namespace latchkey::test
