#include <torture/nemesis_list.hpp>

#include <string>

namespace latchkey::torture {

namespace {

using test::fault_proxy;

struct patient {
  int worker, server;
};

patient any_patient(stage& on, simulation::dice& dice) {
  return {static_cast<int>(dice.below(static_cast<std::uint64_t>(on.workers()))),
          static_cast<int>(dice.below(static_cast<std::uint64_t>(on.servers())))};
}

// Mostly as long as a lease, now and then much longer.
std::int64_t sick_time(stage const& on, simulation::dice& dice) {
  std::int64_t const lease = on.run().lease.count() * ms;
  return dice.one_in(5) ? dice.between(2 * lease, 10 * lease) : dice.between(lease / 2, 2 * lease);
}

// How often the worker has connected meanwhile goes into the history. `again` is done at every look until then.
template <class Again, class End>
blow sick(stage& on, simulation::dice& dice, patient who, Again again, End end) {
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
  auto const who = any_patient(on, dice);
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
  auto const who = any_patient(on, dice);
  auto& proxy = on.proxy(who.worker, who.server);
  proxy.refuse(true);
  proxy.cut();
  return sick(
      on, dice, who, [](fault_proxy&) {}, [](fault_proxy& healed) { healed.refuse(false); });
}

// Every connection ends soon after it was made, most of them behind the handshake.
std::optional<blow> hangs_up(stage& on, simulation::dice& dice) {
  return sick(
      on, dice, any_patient(on, dice), [](fault_proxy& proxy) { proxy.cut(); }, [](fault_proxy&) {});
}

std::optional<blow> deaf(stage& on, simulation::dice& dice) {
  return sick(
      on, dice, any_patient(on, dice), [](fault_proxy& proxy) { proxy.cut(fault_proxy::lines::messages); },
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
