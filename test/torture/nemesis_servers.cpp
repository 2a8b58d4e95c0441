#include <torture/nemesis.hpp>

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
  return healed_by(which, pause_length(on, dice, 10), [&on, which] { on.thaw(which); });
}

std::optional<blow> restart(stage& on, simulation::dice& dice) {
  int const which = any_server(on, dice);
  if (!on.answers(which)) return {};
  on.crash(which);
  return healed_by(which, pause_length(on, dice, 20), [&on, which] { on.start(which); });
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

namespace {

using test::fault_proxy;

struct place {
  int worker, server;
};

place any_place(stage& on, simulation::dice& dice) {
  return {static_cast<int>(dice.below(static_cast<std::uint64_t>(on.workers()))),
          static_cast<int>(dice.below(static_cast<std::uint64_t>(on.servers())))};
}

fault_proxy::lines any_lines(simulation::dice& dice) {
  return dice.of({fault_proxy::lines::all, fault_proxy::lines::commands, fault_proxy::lines::messages});
}

std::optional<blow> reset(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  on.proxy(worker, server).cut(any_lines(dice));
  return blow{.whom = worker};
}

// What was cut off in the middle of a request never runs; in the middle of an answer it has run.
std::optional<blow> cut_at_byte(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto const way = dice.one_in(2) ? fault_proxy::way::requests : fault_proxy::way::replies;
  on.proxy(worker, server).cut_after(way, dice.below(3'000));
  return blow{.whom = worker};
}

std::optional<blow> end_of_file(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  on.proxy(worker, server).half_close(any_lines(dice));
  return blow{.whom = worker};
}

// Bytes are neither lost nor delivered: requests may arrive long after their sender has given them up.
std::optional<blow> half_open(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  auto const lines = any_lines(dice);
  bool const requests = dice.one_in(2);
  bool const replies = !requests || dice.one_in(3);
  if (requests) proxy.hold(fault_proxy::way::requests, true, lines);
  if (replies) proxy.hold(fault_proxy::way::replies, true, lines);
  return healed_by(worker, pause_length(on, dice, 6), [&proxy, lines, requests, replies] {
    if (requests) proxy.hold(fault_proxy::way::requests, false, lines);
    if (replies) proxy.hold(fault_proxy::way::replies, false, lines);
  });
}

// Late copies: the client gives the connections up and goes on with new ones, and what it sent on the old ones arrives
// afterwards, unless it has taken care that it does not run.
std::optional<blow> late_copies(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.hold_back(true);
  auto const lease = on.run().lease.count() * ms;
  return healed_by(worker, dice.between(lease / 4, lease), [&proxy] { proxy.hold_back(false); });
}

std::optional<blow> silence(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.silent(true);
  return healed_by(worker, pause_length(on, dice, 6), [&proxy] { proxy.silent(false); });
}

std::optional<blow> refusal(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.refuse(true);
  proxy.cut();
  return healed_by(worker, pause_length(on, dice, 6), [&proxy] { proxy.refuse(false); });
}

std::optional<blow> byte_by_byte(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.slice(true);
  return healed_by(worker, dice.between(20, 200) * ms, [&proxy] { proxy.slice(false); });
}

}  // namespace

std::vector<nemesis> network_nemeses() {
  return {
      {"reset", "connections are reset", reset},
      {"cut", "a connection is cut at some byte of a request or an answer", cut_at_byte},
      {"eof", "a client reads an end of file; what it sends still arrives", end_of_file},
      {"half-open", "bytes of one way, or of both, are held up and come later", half_open},
      {"late", "what was sent on a connection arrives after what is sent on the next one", late_copies},
      {"silence", "connections are made, and nothing passes", silence},
      {"refusal", "connections are refused", refusal},
      {"slices", "one byte arrives at a time", byte_by_byte},
  };
}

namespace {

// Mostly as long as a lease, now and then much longer.
std::int64_t sick_time(stage const& on, simulation::dice& dice) {
  std::int64_t const lease = on.run().lease.count() * ms;
  return dice.one_in(5) ? dice.between(2 * lease, 10 * lease) : dice.between(lease / 2, 2 * lease);
}

// How often the worker has connected meanwhile goes into the history. `again` is done at every look until then.
template <class Again, class End>
blow sick(stage& on, simulation::dice& dice, place who, Again again, End end) {
  auto& proxy = on.proxy(who.worker, who.server);
  std::int64_t const begin = now(), until = begin + sick_time(on, dice);
  int const before = proxy.accepted();
  return {who.worker, 0, [&on, &proxy, who, begin, until, before, again, end] {
            if (now() < until) {
              again(proxy);
              return false;
            }
            end(proxy);
            record line;
            line.what = what::connects;
            line.lock = static_cast<std::uint32_t>(who.worker);
            line.a = begin;
            line.b = now();
            line.c = proxy.accepted() - before;
            on.log().write(line);
            return true;
          }};
}

constexpr char const* asked_for[] = {"EVAL", "EVALSHA", "SUBSCRIBE", "UNSUBSCRIBE"};

// What it is asked to do it does not do, and says always the same.
std::optional<blow> one_word(stage& on, simulation::dice& dice) {
  static std::vector<std::string> const words{
      "-LOADING Redis is loading the dataset in memory\r\n",
      "-BUSY Redis is busy running a script.\r\n",
      "-READONLY You can't write against a read only replica.\r\n",
      "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
      "-NOAUTH Authentication required.\r\n",
      "-MISCONF Errors writing to the AOF file\r\n",
      "-MASTERDOWN Link with MASTER is down\r\n",
      "-CLUSTERDOWN The cluster is down\r\n",
  };
  auto const who = any_place(on, dice);
  auto const& word = words[dice.below(words.size())];
  std::size_t const commands = dice.one_in(2) ? 2 : std::size(asked_for);
  constexpr int always = 1'000'000'000;
  for (std::size_t i = 0; i < commands; ++i) on.proxy(who.worker, who.server).inject(asked_for[i], word, always);
  return sick(
      on, dice, who, [](fault_proxy&) {},
      [](fault_proxy& proxy) {
        for (char const* name : asked_for) proxy.inject(name, {}, 0);
      });
}

std::optional<blow> turns_away(stage& on, simulation::dice& dice) {
  auto const who = any_place(on, dice);
  auto& proxy = on.proxy(who.worker, who.server);
  proxy.refuse(true);
  proxy.cut();
  return sick(
      on, dice, who, [](fault_proxy&) {}, [](fault_proxy& healed) { healed.refuse(false); });
}

// Every connection ends soon after it was made, most of them behind the handshake.
std::optional<blow> hangs_up(stage& on, simulation::dice& dice) {
  return sick(
      on, dice, any_place(on, dice), [](fault_proxy& proxy) { proxy.cut(); }, [](fault_proxy&) {});
}

std::optional<blow> deaf(stage& on, simulation::dice& dice) {
  return sick(
      on, dice, any_place(on, dice), [](fault_proxy& proxy) { proxy.cut(fault_proxy::lines::messages); },
      [](fault_proxy&) {});
}

}  // namespace

std::vector<nemesis> sickness_nemeses() {
  return {
      {"one-word", "a server answers whatever it is asked with one word, for up to ten leases", one_word},
      {"turns-away", "connections are accepted and closed, for up to ten leases", turns_away},
      {"hangs-up", "every connection ends soon after its handshake, for up to ten leases", hangs_up},
      {"deaf", "every connection that subscribes ends, for up to ten leases", deaf},
  };
}

}  // namespace latchkey::torture
