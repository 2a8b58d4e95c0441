#include <torture/nemesis_list.hpp>

#include <stdexcept>
#include <string>

namespace latchkey::torture {

namespace {

// The first one has most of the locks.
int any_server(stage& on, simulation::dice& dice) {
  return dice.one_in(2) ? 0 : static_cast<int>(dice.below(static_cast<std::uint64_t>(on.servers())));
}

// A server that has just gone takes no command; started again it has its settings from the command line.
template <class... Words>
bool tell(stage& on, int which, Words const&... words) {
  if (!on.answers(which)) return false;
  try {
    on.server(which).admin().command(words...);
  } catch (std::runtime_error const&) {
    return false;
  }
  return true;
}

std::optional<blow> sleeping(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!on.answers(which)) return {};
  on.sleep(which, dice.between(1, on.run().lease.count() / 2) * ms);
  return blow{.whom = which};
}

std::optional<blow> frozen(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!on.answers(which)) return {};
  on.freeze(which);
  return blow{which, pause_length(on, dice, 10), [&on, which] {
                on.thaw(which);
                return true;
              }};
}

std::optional<blow> restart(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!on.answers(which)) return {};
  on.crash(which);
  return blow{which, pause_length(on, dice, 20), [&on, which] {
                on.start(which);
                return true;
              }};
}

std::optional<blow> flush_scripts(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!tell(on, which, "SCRIPT", "FLUSH")) return {};
  return blow{.whom = which};
}

std::optional<blow> kill_connections(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  bool const done = dice.one_in(2)   ? tell(on, which, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                    : dice.one_in(2) ? tell(on, which, "CLIENT", "KILL", "TYPE", "pubsub")
                                     : tell(on, which, "CLIENT", "KILL", "USER", "worker");
  if (!done) return {};
  return blow{.whom = which};
}

std::optional<blow> full_memory(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!tell(on, which, "CONFIG", "SET", "maxmemory", "1")) return {};
  return blow{which, pause_length(on, dice, 10),
              [&on, which] { return tell(on, which, "CONFIG", "SET", "maxmemory", "0"); }};
}

// CLIENT KILL stays allowed: who cannot fence his late copies is promised less (docs/safety.md, section 6).
std::optional<blow> fewer_rights(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  static std::vector<std::vector<std::string>> const choices{
      {"-publish"},       {"-subscribe"}, {"resetchannels"}, {"-evalsha", "-eval"},
      {"-evalsha"},       {"resetkeys"},  {"-pexpire"},      {"-del"},
      {"-hset"},          {"-hincrby"},   {"-@write"},       {"off"},
      {"-hdel"},          {"-set"},       {"-zadd"},         {"-incr"},
      {"-pttl", "-hget"}, {"-exists"},
  };
  auto const& less = choices[dice.below(choices.size())];
  bool done = true;
  for (auto const& one : less) done = done && tell(on, which, "ACL", "SETUSER", "worker", one);
  if (!done) return {};
  if (dice.one_in(2)) tell(on, which, "CLIENT", "KILL", "USER", "worker");
  return blow{which, dice.between(20, 700) * ms,
              [&on, which] { return tell(on, which, "ACL", "SETUSER", "worker", "on", "~*", "&*", "+@all"); }};
}

}  // namespace

std::vector<nemesis> server_nemeses() {
  return {
      {"sleep", "a server is busy for up to half a lease (DEBUG SLEEP)", sleeping},
      {"freeze", "a server stands still for up to three leases (SIGSTOP)", frozen},
      {"restart", "a server is killed and started again with its data (AOF, appendfsync always)", restart},
      {"flush", "SCRIPT FLUSH", flush_scripts},
      {"client-kill", "a server ends connections (CLIENT KILL)", kill_connections},
      {"memory", "a server's memory is full for a while", full_memory},
      {"acl", "rights are taken away for a while, all but CLIENT", fewer_rights},
  };
}

}  // namespace latchkey::torture
