// Check 7: the waiters of both libraries stand in one queue and are served in the order of their arrival.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

constexpr int waiters = 8;

struct standing {
  peer& who;
  std::string worker;
  std::future<answer> turn;
};

std::string serve_in_order(interop_world& world, direction const& between) {
  auto& [holder, other] = between;
  auto const name = new_name();
  auto const queue = "redisson_lock_queue:{" + name + "}";
  demand(holder.call("h", "lock", "fair_lock", name), "held", "the first lock");
  std::vector<standing> line;
  for (int i = 0; i < waiters; ++i) {
    // Two of the other library, one of the holder's, and so on: next to both kinds of neighbours.
    auto& who = i % 3 == 2 ? holder : other;
    auto const worker = "w" + std::to_string(i);
    line.push_back({who, worker, who.start(worker, "lock", "fair_lock", name)});
    demand(wait_until([&] { return world.admin.integer("LLEN", queue) == i + 1; }), "waiter " + worker + " is missing");
  }
  demand(holder.call("h", "unlock", "fair_lock", name), "released", "the first unlock");
  for (std::size_t i = 0; i < line.size(); ++i) {
    auto const worker = line[i].worker;
    demand(peer::value_in(std::move(line[i].turn), worker), "held", worker);
    for (std::size_t later = i + 1; later < line.size(); ++later) {
      demand(line[later].turn.wait_for(0s) == std::future_status::timeout, line[later].worker + " before " + worker);
    }
    demand(line[i].who.call(worker, "unlock", "fair_lock", name), "released", "the unlock of " + worker);
  }
  demand(world.admin.integer("EXISTS", queue, "redisson_lock_timeout:{" + name + "}", name) == 0, "something is left");
  return std::to_string(waiters) + " waiters";
}

}  // namespace

TEST_CASE("waiters of both libraries for a fair lock are served in the order of their arrival", "[interop][brief]") {
  auto& world = steady_world();
  for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
    cell("7 order", "fair_lock", between.name(), [&] { return serve_in_order(world, between); });
  }
}
