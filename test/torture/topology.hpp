#pragma once

#include <simulation/randomness.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>
#include <torture/options.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace latchkey::torture {

// What befalls a set of servers.
enum class mishap : std::uint32_t {
  asked,    // the servers are asked to change places
  forced,   // the replica is told to, and does not ask its master
  killed,   // the master is killed
  stopped,  // the master stands still until it has been replaced, and goes on then
  cut,      // replication is cut, and then the master is replaced
  deaf,     // the same as asked or killed, while a sentinel stands still
  moved,    // a slot moves
  links,    // all connections of clients to a master are cut
  taken,    // the replica takes over, and asks neither its master nor for votes
  paused,   // the master stands still, and goes on before it counts as dead
};
constexpr std::uint32_t mishaps = 10;
char const* name_of(mishap what);
// Does a replica take over?
constexpr bool replaces(mishap what) {
  return what != mishap::moved && what != mishap::links && what != mishap::paused;
}

// In a history a mishap is a fault of this number.
constexpr std::uint32_t first_mishap = 1'000;

// Servers of which one takes over from another. One thread alone uses it.
class topology {
 public:
  topology() = default;
  topology(topology const&) = delete;
  topology& operator=(topology const&) = delete;
  virtual ~topology() = default;

  virtual std::string uri() const = 0;
  // What it can be struck by, the frequent ones several times.
  virtual std::vector<mishap> const& mishaps_by_weight() const = 0;
  // Strikes, and heals what it struck: all masters have their replicas afterwards.
  // \throws std::runtime_error: something did not come about in time; then heal() has to.
  virtual void strike(mishap what, simulation::dice& by) = 0;
  virtual void heal() = 0;
  virtual std::vector<test::redis_server*> masters() = 0;
  // What each server has written of itself, by a name for the file that keeps it.
  virtual std::map<std::string, std::string> logs() = 0;
  // How often a master changed when nobody had asked for it: a busy machine looks like a dead server. What is promised
  // for one failover at a time is not promised then.
  int uninvited() const { return uninvited_; }

 protected:
  int uninvited_ = 0;
};

// As test::wait_until, but rarer: every look asks several servers, and sets of them share the machine.
template <class Predicate>
bool look_until(Predicate holds, milliseconds limit) {
  auto const end = test::clock::now() + limit;
  while (!holds()) {
    if (test::clock::now() >= end) return holds();
    std::this_thread::sleep_for(milliseconds(15));
  }
  return true;
}

// So long a server that is struck is silent before it counts as dead.
constexpr milliseconds dead_after{800};

std::string name_of_log(test::redis_server const& one);

// It stands still for so long.
void pause_for(test::redis_server& one, milliseconds length);

std::unique_ptr<topology> make_sentinels();
// `names`: the slot of one of them is what moves.
std::unique_ptr<topology> make_cluster(std::vector<std::string> names);

}  // namespace latchkey::torture
