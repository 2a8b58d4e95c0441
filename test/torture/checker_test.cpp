// Histories written by hand, and counters. Those that break a rule must be found; those that do not must not.
#include <latchkey/error.hpp>
#include <support/catch.hpp>
#include <torture/checker.hpp>
#include <torture/kinds.hpp>
#include <torture/story.hpp>
#include <torture/updates.hpp>
#include <wire/cluster.hpp>

#include <algorithm>

using namespace latchkey::torture;

TEST_CASE("sections one after the other are in order", "[torture]") {
  story s;
  s.section(0, "lock", {1, 2, 9, 10, 11});
  s.section(1, "lock", {3, 11, 15, 16, 17});
  auto const found = s.judge();
  CHECK(found.good());
  CHECK(found.sections == 2);
  CHECK(found.last_line() ==
        "sections=2 violations=0 lost_reported=0 lost_unreported=0 hung=0 leaked=0 late=0 "
        "storm=0 starved=0");
}

TEST_CASE("two trusted holders at a time are a violation", "[torture]") {
  for (auto const& kind : torture_kinds()) {
    if (kind.who == rule::permits || kind.who == rule::rounds) continue;
    story s;
    s.section(0, kind.name, {.asked = 1, .granted = 2, .trusted = 9, .left = 10, .released = 11, .token = 1});
    s.section(1, kind.name, {.asked = 3, .granted = 8, .trusted = 12, .left = 13, .released = 14, .token = 2});
    INFO(kind.name);
    CHECK(s.judge().violations == 1);
  }
}

TEST_CASE("different locks do not exclude each other", "[torture]") {
  story s;
  s.section(0, "lock", {1, 2, 9, 10, 11}, 0);
  s.section(1, "lock", {3, 8, 12, 13, 14}, 1);
  CHECK(s.judge().good());
}

TEST_CASE("who knew that his hold was over did not violate anything by staying", "[torture]") {
  story s;
  s.section(0, "lock", {1, 2, 5, 20, 21, told_by_held | told_by_lost, outcome::expired});
  s.section(1, "lock", {3, 8, 12, 13, 14});
  auto const found = s.judge();
  CHECK(found.good());
  CHECK(found.lost_reported == 1);
}

TEST_CASE("readers are together, a writer is alone", "[torture]") {
  for (bool const second_reads : {true, false}) {
    story s;
    s.section(0, "read_write_lock",
              {.asked = 1, .granted = 2, .trusted = 9, .left = 10, .released = 11, .reads = true});
    s.section(1, "read_write_lock",
              {.asked = 3, .granted = 8, .trusted = 12, .left = 13, .released = 14, .reads = second_reads});
    CHECK(s.judge().violations == (second_reads ? 0 : 1));
  }
}

TEST_CASE("a stranger's deletion excuses an overlap for one lease", "[torture]") {
  for (auto const& [begin, excused] : {std::pair(5, true), {12, false}}) {
    story s;
    s.section(0, "lock", {1, 2, 9, 10, 11, told_not, outcome::expired});
    s.section(1, "lock", {3, 8, 12, 13, 14});
    s.removed(begin, begin + 1);
    auto const found = s.judge();
    CHECK(found.violations == (excused ? 0 : 1));
    CHECK(found.excused == (excused ? 1 : 0));
  }
}

TEST_CASE("a deletion long before does not excuse anything", "[torture]") {
  story s;
  s.section(0, "lock", {1, 2'000, 2'100, 2'110, 2'120});
  s.section(1, "lock", {3, 2'050, 2'090, 2'200, 2'210});
  s.removed(5, 6);
  CHECK(s.judge().violations == 1);
}

TEST_CASE("trust that outlives its lease is an unreported loss", "[torture]") {
  story s;
  s.section(0, "lock", {.asked = 1, .granted = 2, .trusted = 103, .left = 104, .released = 105, .lease = 100});
  CHECK(s.judge().lost_unreported == 1);
}

TEST_CASE("trust that outlives its removal by more than a lease is an unreported loss", "[torture]") {
  for (auto const& [trusted, good] : {std::pair(1'010, true), {1'012, false}}) {
    story s;
    s.section(0, "lock", {1, 2, trusted, trusted + 1, trusted + 2, told_by_lost, outcome::expired});
    s.removed(9, 11);
    CHECK(s.judge().good() == good);
  }
}

TEST_CASE("trust that outlives its server by more than a lease is an unreported loss", "[torture]") {
  for (auto const& [end, good] : {std::pair(1'050, true), {3'000, false}}) {
    story s;
    s.section(0, "lock", {1, 2, 1'100, 1'101, 1'102});
    s.coordinator(what::outage, 10, end, 0);
    CHECK(s.judge().good() == good);
  }
}

TEST_CASE("a release that says released of what another had been granted is an unreported loss", "[torture]") {
  for (auto const how : {outcome::released, outcome::expired}) {
    story s;
    s.section(0, "lock", {1, 2, 5, 20, 21, told_by_held, how});
    s.section(1, "lock", {3, 8, 12, 13, 14});
    CHECK(s.judge().lost_unreported == (how == outcome::released ? 1 : 0));
  }
  story told_late;
  told_late.section(0, "lock", {1, 2, 15, 20, 21});
  told_late.section(1, "lock", {3, 8, 0, 9, 10, told_by_held | told_by_lost, outcome::expired});
  CHECK(told_late.judge().lost_unreported == 0);
}

TEST_CASE("a grant that a stranger may have removed before it was told of takes nothing from a later one",
          "[torture]") {
  for (bool const removed : {true, false})
    for (outcome const how : {outcome::expired, outcome::dropped, outcome::released}) {
      story s;
      s.section(0, "lock", {3, 7, 15, 20, 21});
      s.section(1, "lock", {1, 8, 9, 9, 10, told_not, how});
      if (removed) s.removed(5, 6);
      CHECK(s.judge().lost_unreported == (removed && how != outcome::released ? 0 : 1));
    }
}

TEST_CASE("a lost() that stays silent is an unreported loss", "[torture]") {
  story s;
  s.section(0, "lock", {1, 2, 5, 3'020, 3'021, told_by_held | told_silently, outcome::expired});
  CHECK(s.judge().lost_unreported == 1);
}

TEST_CASE("more trusted permits than there are are a violation", "[torture]") {
  for (int takers : {permits, permits + 1}) {
    story s;
    for (int i = 0; i < takers; ++i)
      s.section(i % 2, "permit_semaphore", {.asked = 1, .granted = 2 + i, .trusted = 20, .left = 21, .released = 22});
    CHECK(s.judge().violations == (takers > permits ? 1 : 0));
  }
}

TEST_CASE("a semaphore that ends with other permits than it had is found", "[torture]") {
  for (int left : {permits - 1, permits, permits + 1}) {
    story s;
    auto& pool = s.coordinator(what::pool, 0, 0);
    pool.kind = kind_called("semaphore");
    pool.a = left;
    auto const found = s.judge();
    CHECK(found.violations == (left > permits ? 1 : 0));
    CHECK(found.leaked == (left < permits ? 1 : 0));
  }
}

TEST_CASE("a permit whose release the server refused may stay taken, another one may not", "[torture]") {
  using latchkey::errc;
  for (errc const error : {errc::server_error, errc::auth_failed, errc::timeout}) {
    auto const how = static_cast<outcome>(static_cast<int>(outcome::error) + static_cast<int>(error));
    story s;
    s.section(0, "semaphore", {.asked = 1, .granted = 2, .trusted = 20, .left = 21, .released = 22, .end = how});
    auto& pool = s.coordinator(what::pool, 0, 0);
    pool.kind = kind_called("semaphore");
    pool.a = permits - 1;
    CHECK(s.judge().leaked == (error == errc::timeout ? 1 : 0));
  }
}

TEST_CASE("a token that does not rise, or comes twice, is a violation", "[torture]") {
  for (std::uint64_t token : {6u, 7u, 8u}) {
    story s;
    s.section(0, "fenced_lock", {.asked = 1, .granted = 2, .trusted = 9, .left = 10, .released = 11, .token = 7});
    s.section(1, "fenced_lock",
              {.asked = 12, .granted = 13, .trusted = 15, .left = 16, .released = 17, .token = token});
    CHECK(s.judge().violations == (token > 7 ? 0 : 1));
  }
}

TEST_CASE("tokens of callers who asked at the same time may come in any order", "[torture]") {
  story s;
  s.section(0, "fenced_lock", {.asked = 1, .granted = 20, .trusted = 29, .left = 30, .released = 31, .token = 8});
  s.section(1, "fenced_lock", {.asked = 2, .granted = 3, .trusted = 4, .left = 5, .released = 6, .token = 7});
  CHECK(s.judge().good());
}

TEST_CASE("a latch that is passed before its count was reached is a violation", "[torture]") {
  for (int counts : {latch_parties - 1, latch_parties}) {
    story s;
    s.call_of(0, call::set_count, 1, 2, latch_parties, 5);
    for (int i = 0; i < counts; ++i) s.call_of(0, call::count_down, 3 + i, 4 + i, 0, 5);
    s.section(1, "latch", {3, 20, 20, 21, 22}, 5);
    CHECK(s.judge().violations == (counts == latch_parties ? 0 : 1));
  }
}

TEST_CASE("a call that took longer than it may hung, but for the time its process was stopped", "[torture]") {
  for (bool const stopped : {false, true}) {
    story s;
    s.section(0, "lock", {1, 12'000, 12'001, 12'002, 12'003});
    if (stopped) s.coordinator(what::pause, 100, 6'000, 0);
    CHECK(s.judge().hung == (stopped ? 0 : 1));
  }
}

TEST_CASE("a call without an end hung, unless its process was killed before it had to end", "[torture]") {
  for (int ending = 0; ending < 4; ++ending) {
    story s;
    s.section(0, "lock", {.asked = 1, .granted = 0, .trusted = 0, .left = 0, .released = 0});
    auto& line = ending == 0 ? s.add(0, 100, what::over) : s.coordinator(what::kill, 0, 0);
    line.b = ending == 0 ? 0 : 1;
    line.time = ending == 1 ? 100 * ms : 20 * second;
    if (ending == 3) s.coordinator(what::overdue, 0, 0).b = 1;
    CHECK(s.judge().hung == (ending == 1 ? 0u : ending == 3 ? 2u : 1u));
  }
}

TEST_CASE("a lock that cannot be had when all is healed hung", "[torture]") {
  story s;
  s.section(0, "lock", {.asked = 1, .granted = 0, .trusted = 0, .left = 0, .released = 0});
  s.run.workers[0].lines.back().code = mode::final_round;
  auto& line = s.add(0, 100, what::refused);
  line.section = s.sections;
  CHECK(s.judge().hung == 1);
}

TEST_CASE("what is left in a client or on a server leaked, and a worker that ended on its own is a violation",
          "[torture]") {
  story s;
  CHECK(s.judge().good());
  s.add(0, 5, what::rest).c = 1;
  s.add(0, 6, what::rest).code = 1;
  s.add(1, 7, what::over).a = 2;
  s.run.left_behind.push_back("the key x");
  s.run.accidents.push_back("worker 1.1 ended with signal 6");
  auto const found = s.judge();
  CHECK(found.leaked == 4);
  CHECK(found.violations == 1);
}

TEST_CASE("an acquire that ends a second after its wait is late", "[torture]") {
  story s;
  s.section(0, "lock", {.asked = 1, .granted = 1'090, .trusted = 1'095, .left = 1'095, .released = 1'096, .wait = 100});
  CHECK(s.judge().good());
  s.section(1, "lock",
            {.asked = 2'001, .granted = 3'110, .trusted = 3'115, .left = 3'115, .released = 3'116, .wait = 100});
  auto const found = s.judge();
  CHECK(found.late == 1);
  CHECK(found.hung == 0);
  CHECK_FALSE(found.good());
}

TEST_CASE("the time at which its process stood still does not make a call late", "[torture]") {
  story s;
  s.section(1, "lock", {.asked = 1, .granted = 2'110, .trusted = 2'115, .left = 2'115, .released = 2'116, .wait = 100});
  s.coordinator(what::pause, 50, 1'500, 1);
  CHECK(s.judge().late == 0);
}

TEST_CASE("a standstill that machine and process both noticed excuses a call once", "[torture]") {
  story s;
  s.section(1, "lock", {.asked = 1, .granted = 2'110, .trusted = 2'115, .left = 2'115, .released = 2'116, .wait = 100});
  s.coordinator(what::stall, 50, 850);
  s.coordinator(what::pause, 60, 840, 1);
  CHECK(s.judge().late == 1);
  s.coordinator(what::pause, 900, 1'500, 1);
  CHECK(s.judge().late == 0);
}

TEST_CASE("who waits while another process alone has its turns is starved", "[torture]") {
  auto const turns = [](story& s, std::int64_t each, bool shares) {
    for (std::int64_t i = 0; i < 200; ++i) {
      auto const at = 10 + i * each;
      s.section(shares && i % 50 == 0 ? 2 : 0, "lock",
                {.asked = at, .granted = at + 1, .trusted = at + 2, .left = at + 3, .released = at + 4});
    }
    s.section(1, "lock",
              {.asked = 1,
               .granted = 20 + 200 * each,
               .trusted = 21 + 200 * each,
               .left = 21 + 200 * each,
               .released = 22 + 200 * each,
               .wait = 10'000});
  };
  story held;  // once for long, and then again and again for a moment
  held.section(0, "lock", {.asked = 2, .granted = 3, .trusted = 960, .left = 960, .released = 961});
  for (std::int64_t at = 961; at < 1'361; at += 2)
    held.section(0, "lock", {.asked = at, .granted = at, .trusted = at + 1, .left = at + 1, .released = at + 1});
  held.section(1, "lock",
               {.asked = 1, .granted = 1'362, .trusted = 1'363, .left = 1'363, .released = 1'364, .wait = 10'000});
  CHECK(held.judge().starved == 0);
  story starves;
  turns(starves, 10, false);
  CHECK(starves.judge().starved == 1);
  CHECK_FALSE(starves.judge().good());
  story shares(3);
  turns(shares, 10, true);
  CHECK(shares.judge().starved == 0);
  story soon;
  turns(soon, 4, false);
  CHECK(soon.judge().starved == 0);
  story excused;
  turns(excused, 10, false);
  excused.coordinator(what::fault, 900, 950);
  CHECK(excused.judge().starved == 0);
}

TEST_CASE("a client that connects to a sick server without end is a storm", "[torture]") {
  story s;
  auto& line = s.coordinator(what::connects, 100, 2'070);
  line.c = 1'900;
  CHECK(s.judge().good());
  line.c = 10'000;
  CHECK(s.judge().storm == 1);
}

TEST_CASE("what a failover may undo is counted apart", "[torture]") {
  story overlaps;
  overlaps.section(0, "lock", {1, 2, 9, 10, 11});
  overlaps.section(1, "lock", {3, 8, 12, 13, 14});
  CHECK(overlaps.judge({.counts = true}).violations == 1);
  CHECK(overlaps.judge({.holds = true}).violations == 0);
  CHECK(overlaps.judge({.holds = true}).documented == 1);

  story falls;
  falls.section(0, "fenced_lock", {.asked = 1, .granted = 2, .trusted = 9, .left = 10, .released = 11, .token = 2});
  falls.section(1, "fenced_lock", {.asked = 12, .granted = 13, .trusted = 14, .left = 15, .released = 16, .token = 1});
  CHECK(falls.judge({.counts = true}).violations == 1);
  CHECK(falls.judge({.holds = true}).documented == 1);

  story crowd(permits + 1);
  for (int i = 0; i <= permits; ++i) crowd.section(i, "permit_semaphore", {1, 2, 9, 10, 11});
  CHECK(crowd.judge({.holds = true}).violations == 1);
  CHECK(crowd.judge({.counts = true}).violations == 0);
  CHECK(crowd.judge({.counts = true}).documented == 1);
}

TEST_CASE("a worker that the machine did not run is not late for that", "[torture]") {
  story s;
  s.section(0, "lock", {.asked = 1, .granted = 3'000, .trusted = 3'010, .left = 3'020, .released = 3'030, .wait = 50});
  CHECK(s.judge().late == 1);
  auto& stood = s.add(0, 2'900, what::pause);
  stood.a = 100 * ms;
  stood.b = 2'900 * ms;
  CHECK(s.judge().late == 0);
}

// The numbers that are counted under locks while masters change.

TEST_CASE("a counter refuses who comes with an older token than it has seen", "[torture]") {
  counter one;
  credential const first{.token = 5}, between{.token = 6}, last{.token = 7};
  CHECK(one.read(first) == 0u);
  CHECK(one.write(1, first) == 0u);
  CHECK(one.read(last) == 1u);
  CHECK_FALSE(one.write(2, first));  // somebody has read since
  CHECK_FALSE(one.read(between));
  CHECK(one.write(2, last) == 1u);
  CHECK(one.value() == 2);
}

TEST_CASE("a counter refuses a token that it has seen from another holder", "[torture]") {
  counter one;
  credential const before{.token = 5, .holder = 1}, again{.token = 5, .holder = 2};
  CHECK(one.read(before) == 0u);
  CHECK_FALSE(one.read(again));
  CHECK_FALSE(one.write(9, again));
  CHECK(one.write(1, before) == 0u);
  CHECK(one.read({.token = 6, .holder = 2}) == 1u);
}

TEST_CASE("without tokens the later write stands", "[torture]") {
  counter one;
  auto const first = one.read({.holder = 1}), next = one.read({.holder = 2});
  REQUIRE((first && next));
  CHECK(one.write(*first + 1, {.holder = 1}) == 0u);
  CHECK(one.write(*next + 1, {.holder = 2}) == 1u);  // that is lost
  CHECK(one.value() == 1);
}

TEST_CASE("the counters of every way are spread over the masters of a cluster", "[torture]") {
  for (std::size_t w = 0; w < ways; ++w)
    for (std::size_t i = 0; i < counters; ++i)
      CHECK(latchkey::detail::slot_of(counter_name(static_cast<way>(w), i)) * counters / latchkey::detail::slot_count ==
            i);
}
