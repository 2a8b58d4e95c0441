#include <torture/nemesis_list.hpp>

namespace latchkey::torture {

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
  return blow{worker, pause_length(on, dice, 6), [&proxy, lines, requests, replies] {
                if (requests) proxy.hold(fault_proxy::way::requests, false, lines);
                if (replies) proxy.hold(fault_proxy::way::replies, false, lines);
                return true;
              }};
}

// Late copies: the client gives the connections up and goes on with new ones, and what it sent on the old ones arrives
// afterwards, unless it has taken care that it does not run.
std::optional<blow> late_copies(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.hold_back(true);
  auto const lease = on.run().lease.count() * ms;
  return blow{worker, dice.between(lease / 4, lease), [&proxy] {
                proxy.hold_back(false);
                return true;
              }};
}

std::optional<blow> silence(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.silent(true);
  return blow{worker, pause_length(on, dice, 6), [&proxy] {
                proxy.silent(false);
                return true;
              }};
}

std::optional<blow> refusal(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.refuse(true);
  proxy.cut();
  return blow{worker, pause_length(on, dice, 6), [&proxy] {
                proxy.refuse(false);
                return true;
              }};
}

std::optional<blow> byte_by_byte(stage& on, simulation::dice& dice) {
  auto const [worker, server] = any_place(on, dice);
  auto& proxy = on.proxy(worker, server);
  proxy.slice(true);
  return blow{worker, dice.between(20, 200) * ms, [&proxy] {
                proxy.slice(false);
                return true;
              }};
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

}  // namespace latchkey::torture
