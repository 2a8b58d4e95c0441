#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/walks.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

namespace machine_walk {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Walks at random: calls, cancellations, losses and events in any order, then everything must come to rest with
// nothing left. Which seeds: support/unit/walks.hpp.

namespace {

constexpr int moves = 120;
constexpr std::uint64_t most_steps = 16;  // between two of them

enum class lock { reentrant, read_write };

how anyhow(world& w, lock of) {
  how made;
  if (of == lock::read_write) {
    made.which = &detail::read_write_kind();
    made.mode = w.random(3) == 0;
  } else if (w.random(4) == 0) {
    made.name = "other";
  }
  made.client = w.random(2);
  made.direct = w.random(3) == 0;
  if (w.random(3) == 0) made.wait = milliseconds(w.random(6'000));
  if (w.random(3) == 0) made.lease = milliseconds(200 + w.random(8'000));
  return made;
}

void call(world& w, lock of) {
  std::uint64_t const owner = 1 + w.random(3);
  call_at_random(
      w, owner, [&] { return anyhow(w, of); }, 40'000);
}

void fault(world& w) {
  std::size_t const client = w.random(2);
  role const as = static_cast<role>(w.random(3));
  switch (w.random(9)) {
    case 0: w.lose(as, fate::gone, client); return;
    case 1: w.lose(as, fate::ran, client); return;
    case 2:
    case 3: w.lose(as, fate::late, client); return;
    case 4: w.lose(as, fate::silent, client); return;
    case 5: w.server.flush_scripts(); return;
    case 6: w.server.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory"); return;
    case 7: w.server.refuse("CLIENT KILL ID", "BUSY Redis is busy running a script."); return;
    default: w.server.restart(true);
  }
}

void foreign_step(world& w) {
  if (w.random(2) == 0)
    w.server.stranger_takes("k", "stranger:1", static_cast<std::int64_t>(100 + w.random(5'000)));
  else
    w.server.stranger_releases("k", "stranger:1");
}

// How much was granted on the way.
std::uint64_t walk(lock of, std::uint64_t seed, bool faults) {
  int const warm_up = warm_ups[seed % warm_ups.size()];
  world w({.lock_watchdog_timeout = 3s,
           .timeout = 1s,
           .local_handoff = {.max_streak = 3, .max_time = 50ms, .warm_up = warm_up}},
          2);
  w.any_order = seed * 2 + 1;
  w.faulty = true;
  w.late_bytes = false;
  for (int i = 0; i < moves; ++i) {
    switch (w.random(10)) {
      case 0:
      case 1: call(w, of); break;
      case 2:
        if (faults && w.random(3) == 0) fault(w);
        break;
      case 3:
        if (of == lock::reentrant && w.random(3) == 0) foreign_step(w);
        break;
      case 4:
        if (w.random(3) == 0) w.server.run_left_behind();
        break;
      case 5:
        if (w.random(2) == 0) w.wait_for_next();
        break;
      default:
        for (auto steps = w.random(most_steps); steps > 0; --steps) w.step();
    }
  }
  auto const& all = w.tasks();
  auto const granted = std::count_if(all.begin(), all.end(), [](auto const& one) { return one->granted(); });
  w.server.stranger_releases("k", "stranger:1");
  w.server.accept_all();
  w.late_bytes = true;
  w.finish();
  return static_cast<std::uint64_t>(granted);
}

void walk_all(lock of, std::uint64_t walks, bool faults) {
  seeds const all(walks / slowness);
  std::uint64_t granted = 0;
  all.each([&](std::uint64_t seed) { granted += walk(of, seed, faults); });
  CHECK((all.one() || granted > 2 * all.count()));
  if (all.more_than_usual()) WARN(all.count() << " walks, " << granted << " grants");
}

}  // namespace

TEST_CASE("walk: calls in any order") { walk_all(lock::reentrant, 1'000, false); }

TEST_CASE("walk: calls and faults in any order") { walk_all(lock::reentrant, 1'000, true); }

TEST_CASE("walk: read/write lock: calls in any order") { walk_all(lock::read_write, 300, false); }

TEST_CASE("walk: read/write lock: calls and faults in any order") { walk_all(lock::read_write, 300, true); }

}  // namespace machine_walk
