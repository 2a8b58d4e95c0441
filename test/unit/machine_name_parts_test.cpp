#include <machine/active_requests.hpp>
#include <machine/context.hpp>
#include <machine/holders.hpp>
#include <machine/name_machine.hpp>
#include <support/catch.hpp>
#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// What a name knows of its owners, each part alone: who holds it, and whose request others may have to wait for.

namespace {

using place = request::place;

constexpr unsigned char reads = 0, writes = 1;

// Three owners of a read/write lock; their name does nothing.
struct room {
  context shared{config{}};
  name_machine name{shared, read_write_kind(), "k"};
  owner_state a{name, 1}, b{name, 2}, c{name, 3};
  holders who{read_write_kind().rules()};
  active_requests active{read_write_kind().rules()};
  operation caller;

  hold& holds(owner_state& one, unsigned char mode, instant until) {
    hold made;
    made.mode = mode;
    made.deadline = until;
    hold& kept = one.add(std::move(made));
    who.note(one);
    return kept;
  }
  void asks(owner_state& one, ask what, place where, unsigned char mode, bool awaited) {
    active.forget(one);
    one.ask_ = {.what = what, .where = where, .mode = mode, .target = what == ask::acquire ? 1 : 0};
    one.ask_.call = awaited ? &caller : nullptr;
    active.note(one);
  }
};

constexpr instant start{std::chrono::hours(1)};

}  // namespace

TEST_CASE("holders: who has a live hold, until when the last of them lasts, and whom they keep out",
          "[unit][machine]") {
  room r;
  CHECK(r.who.empty());
  hold& first = r.holds(r.a, reads, start);
  r.holds(r.b, reads, start + 5s);
  CHECK(r.who.all().size() == 2);
  CHECK(r.who.latest_deadline() == start + 5s);
  CHECK(r.who.keep_out(r.c, writes));
  CHECK_FALSE(r.who.keep_out(r.c, reads));
  CHECK(r.who.keep_out(r.a, writes));  // the other reader does
  CHECK(r.who.excludes(r.a, writes));
  CHECK_FALSE(r.who.excludes(r.a, reads));
  r.a.end(first);
  r.who.note(r.a);
  r.who.note(r.a);
  CHECK(r.who.all().size() == 1);
  CHECK_FALSE(r.who.keep_out(r.b, writes));
}

TEST_CASE("active requests: a wanted try keeps nobody waiting, unless it goes by the direct lane", "[unit][machine]") {
  room r;
  r.asks(r.a, ask::acquire, place::shared, writes, true);
  CHECK_FALSE(r.a.ask_.noted);
  r.asks(r.a, ask::acquire, place::direct, writes, true);
  CHECK(r.a.ask_.noted);
  CHECK_FALSE(r.active.in_doubt(writes));
  r.active.doubt_direct_tries();
  CHECK(r.a.ask_.doubtful);
}

TEST_CASE("active requests: what was sent and is not awaited leaves the name in doubt", "[unit][machine]") {
  for (place const where : {place::shared, place::direct, place::in_doubt}) {
    room r;
    r.asks(r.a, ask::release, where, writes, true);
    CHECK_FALSE(r.active.in_doubt(writes));
    CHECK(r.active.release_sent());
    r.asks(r.a, ask::release, where, writes, false);
    CHECK(r.active.in_doubt(writes));
    CHECK_FALSE(r.active.in_doubt(writes, &r.a));
    r.asks(r.a, ask::acquire, where, writes, false);
    r.a.ask_.abandoned = true;
    r.active.note(r.a);
    CHECK(r.active.in_doubt(writes));
    r.active.forget(r.a);
    CHECK_FALSE(r.active.in_doubt(writes));
  }
}

TEST_CASE("active requests: of a side that several share it leaves that side alone, if nothing is to be repaired",
          "[unit][machine]") {
  room r;
  r.asks(r.a, ask::release, place::shared, reads, false);
  CHECK(r.active.in_doubt(writes));
  CHECK_FALSE(r.active.in_doubt(reads));
  r.a.ask_.fix = 1;
  CHECK(r.active.in_doubt(reads));
}

TEST_CASE("active requests: one release that waits to be sent can take a try along, two cannot", "[unit][machine]") {
  room r;
  r.asks(r.a, ask::release, place::outbox, writes, false);
  CHECK_FALSE(r.active.in_doubt(writes));
  CHECK_FALSE(r.active.release_sent());
  CHECK(r.active.unsent_release(r.b) == &r.a);
  CHECK(r.active.unsent_release(r.a) == nullptr);
  CHECK(r.active.dropped_release(r.b));
  CHECK_FALSE(r.active.dropped_release(r.a));
  r.asks(r.b, ask::release, place::outbox, writes, true);
  CHECK(r.active.in_doubt(writes));
  CHECK_FALSE(r.active.dropped_release(r.a));
  r.holds(r.a, writes, start);  // not its last
  CHECK(r.active.unsent_release(r.c) == &r.b);
}
