// A short form of `scripts/simulate --scale`. Bounds are what clients have to do, and some room; figures of large runs
// are in docs/sizing.md.
#include <simulation/scale.hpp>
#include <support/catch.hpp>

namespace simulation_scale {

using namespace latchkey::scale;

namespace {

constexpr wishes small{.clients = 20, .names = 400, .shards = 5, .warm_up = 15'000};

void check_all_is_well(figures const& found) {
  CHECK(found.lost == 0);
  CHECK(found.two_holders == 0);
  CHECK(found.failed_calls == 0);
  CHECK(found.forgotten == 0);
  REQUIRE(found.held > 40);
  REQUIRE(found.wanted > 3);
  // Whoever has released it meanwhile is not looked for.
  CHECK(found.asserted.all.size() >= found.held * 9 / 10);
  CHECK(found.asked.all.size() >= found.wanted * 9 / 10);
}

}  // namespace

TEST_CASE("scale: clients of a cluster go on when the replica of a dead master is elected", "[simulate][scale]") {
  figures const found = play(small);
  check_all_is_well(found);
  // A question every 200 ms tells of the election; connections were refused, and are tried again after a pause.
  CHECK(found.first_grant < found.elected - found.died + std::chrono::milliseconds(250));
  CHECK(found.asserted.ms(1) < static_cast<double>(small.elected_after) + 600);
  CHECK(found.asked.ms(1) < static_cast<double>(small.elected_after) + 600);
  CHECK(found.idle.ms(1) < 600);
}

TEST_CASE("scale: what a failover makes clients say has bounds", "[simulate][scale]") {
  figures const found = play(small);
  auto const& storm = found.at(part::storm);
  // One handshake of a shared connection for each client; one look for each hold, and one renewal beside it.
  CHECK(storm.of("INFO") <= small.clients);
  CHECK(storm.of("renew") <= 2 * found.held);
  CHECK(storm.commands() <= 20 * small.clients + 6 * (found.held + found.wanted));
  auto const& outage = found.others(part::outage);
  auto const seconds = static_cast<std::uint64_t>(small.elected_after) / 1'000;
  CHECK(outage.of("CLUSTER NODES") <= small.clients * (6 * seconds + 4));
  // Nobody else has failed.
  CHECK(outage.of("INFO") <= small.clients);
  CHECK(outage.of("ROLE") <= small.clients * (small.shards - 1) * 2);
}

TEST_CASE("scale: the machine of a master is gone, and nobody is told", "[simulate][scale]") {
  wishes what = small;
  what.silent = true;
  check_all_is_well(play(what));
}

}  // namespace simulation_scale
