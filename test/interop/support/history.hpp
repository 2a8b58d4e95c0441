#pragma once

#include <interop/support/interop_world.hpp>
#include <interop/support/state_dump.hpp>

#include <functional>

namespace latchkey::test {

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
