#pragma once

#include <server_model/server.hpp>
#include <support/unit/task.hpp>
#include <wire/kind.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::simulation {

using namespace model;  // the server

using test::task;

// What the simulation has to know about a lock kind: what its keys mean, and what must always be true of it.
// The defaults are those of a hash `name` whose only field is the holder's.
class simulated_kind {
 public:
  struct server_hold {
    std::int64_t count = 0;                 // 0: none
    std::int64_t ends = keyspace::forever;  // the last millisecond of the server's clock in which it is there
  };

  // Whoever is granted it has it; or takes a part of a number that nobody owns; or permits with an id each; or waits
  // for a number to reach zero and takes nothing.
  enum class use : unsigned char { holds, number, ids, latch };

  simulated_kind(std::string called, detail::kind const& of, unsigned char sides = 1, use as = use::holds)
      : name(std::move(called)), which(of), modes(sides), used_as(as) {}
  virtual ~simulated_kind() = default;

  // Is this field one of this client?
  virtual bool belongs(std::string const& field, std::string const& client) const {
    return field.starts_with(client) && field.size() > client.size() && field[client.size()] == ':';
  }
  // What the server has for a field.
  virtual server_hold look(keyspace& data, std::string const& lock, std::string const& field) const;
  // The fields of all who hold it.
  virtual std::vector<std::string> holders(keyspace& data, std::string const& lock) const;
  // May two different owners trust their holds at once?
  virtual bool may_share(task const&, task const&) const { return false; }
  // With config::local_turns: it may be passed on to others of its client, or have come from them.
  // Not a member of a joint lock: its votes are asked of the servers.
  bool has_turns(task const& one) const {
    return which.rules().turns && one.mode == which.rules().turn_mode && !one.member;
  }
  // Would this caller, whose field this is, be granted now?
  virtual bool free(keyspace& data, std::string const& lock, std::string const& field, task const& waits) const;
  // May this key stay when nobody uses the lock any more?
  virtual bool may_stay(std::string const&) const { return false; }
  // What is counted: free permits, all permits (of those with ids), or what a latch still waits for.
  virtual std::int64_t stock(keyspace&, std::string const&) const { return 0; }
  // How many there are of it at the beginning.
  virtual std::int64_t all(std::string const&) const { return 0; }
  // Every key of a lock.
  virtual std::vector<std::string> keys(std::string const& lock) const { return {lock}; }
  // Puts the server into the state in which the lock can be used.
  virtual void prepare(server&, std::string const&) const {}
  // Those who stand in a queue on the server, first first. `dead_at`: when a silent one counts as dead, by its clock.
  struct waiter {
    std::string field;
    std::int64_t dead_at = 0;
  };
  virtual std::vector<waiter> line(keyspace&, std::string const&) const { return {}; }
  // Every script that a client of this kind may send, and what histories call it.
  virtual std::vector<std::pair<detail::script const*, char const*>> scripts() const;

  std::string const name;
  detail::kind const& which;
  unsigned char const modes;
  use const used_as;
  // Not empty: a lock of several members, each of which is a lock of `which` on the server of this number.
  std::vector<std::size_t> places{};
  bool majority = false;
  bool joint() const { return !places.empty(); }
};

// Every kind that can be simulated. A new one: a line in kinds.cpp, and a class with what is different about its keys.
std::vector<std::unique_ptr<simulated_kind>> const& simulated_kinds();
// kind_permits.cpp
std::unique_ptr<simulated_kind> semaphore_kind();
std::unique_ptr<simulated_kind> permit_semaphore_kind();
std::unique_ptr<simulated_kind> latch_kind();

}  // namespace latchkey::simulation
