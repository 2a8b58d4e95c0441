#include <machine/context.hpp>
#include <machine/holders.hpp>
#include <machine/name_machine.hpp>
#include <machine/owner_state.hpp>
#include <machine/waiters.hpp>
#include <support/catch.hpp>
#include <wire/kinds.hpp>

namespace machine_name_parts {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// What a name knows of its owners, each part alone: who holds it, and whose request others may have to wait for.

namespace {

using place = request::place;

constexpr unsigned char reads = 0, writes = 1;
constexpr instant start{std::chrono::hours(1)};

// Three owners of a read/write lock; their name does nothing.
struct room {
  context shared{config{}};
  home at{shared};
  name_machine name{shared, at, read_write_kind(), "k"};
  owner_state a{name, 1}, b{name, 2}, c{name, 3};
  lock_name about{shared, at, read_write_kind(), "k"};
  holders who{about};
  active_requests active;
  operation caller;
  actions out;

  room() {
    shared.out = &out;
    shared.now = start;
  }
  ~room() {
    for (owner_state* one : who.all())
      while (!one->holds.empty()) who.forget(*one, *one->holds.back());
  }

  hold& holds(owner_state& one, unsigned char mode, instant until) {
    hold made;
    made.mode = mode;
    made.deadline = until;
    made.began = start - 1s;
    return who.begin(one, std::move(made));
  }
  void asks(owner_state& one, ask what, place where, unsigned char mode, bool awaited) {
    active.forget(one);
    request asked{.what = what, .where = where, .mode = mode, .target = what == ask::acquire ? 1 : 0};
    asked.call = awaited ? &caller : nullptr;
    one.ask_.begin(one, std::move(asked), shared.spares.requests);
    active.note(one);
  }
};

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
  CHECK(r.shared.counters.held == 2);
  r.who.forget(r.a, first);
  CHECK(r.who.all().size() == 1);
  CHECK(r.shared.counters.held == 1);
  CHECK(r.shared.counters.released == 1);
  CHECK_FALSE(r.who.keep_out(r.b, writes));
}

TEST_CASE("holders: what a lease shows moves with the end of its hold, and is told once that it is over",
          "[unit][machine]") {
  room r;
  hold_link link;
  hold made;
  made.deadline = start + 5s;
  made.link = &link;
  hold& held = r.who.begin(r.a, std::move(made));
  CHECK(r.shared.shown == 1);
  CHECK(link.until() == start + 5s);
  CHECK(r.who.lasts(&held));
  CHECK(r.who.rest_of(held) == 5s);
  r.who.move_end(held, start + 2s);
  CHECK(link.until() == start + 2s);
  r.shared.now = start + 2s;
  CHECK_FALSE(r.who.lasts(&held));
  CHECK_FALSE(r.who.lasts(nullptr));
  CHECK(r.who.rest_of(held) == 0s);
  CHECK_FALSE(r.who.lose(r.a, held, errc::lease_lost));  // its lease is told
  r.who.tell(held, errc::closed);
  CHECK(r.out.lost.size() == 1);
  CHECK(r.shared.shown == 0);
  CHECK(r.shared.counters.lost == 1);
  CHECK(r.who.empty());
  CHECK(r.a.live() == 0);
  CHECK(r.a.holds.size() == 1);  // until its lease goes
  r.who.forget(r.a, held);
  CHECK(r.shared.counters.released == 0);
}

TEST_CASE("holders: a lost hold without a lease is told by the next unlock", "[unit][machine]") {
  room r;
  hold& held = r.holds(r.a, writes, start + 5s);
  CHECK(r.who.lose(r.a, held, errc::lease_lost));
  CHECK(r.out.lost.empty());
  CHECK(r.shared.counters.held == 0);
  r.who.forget(r.a, held);
}

TEST_CASE("holders: what is left to its lease counts as lost once, and still keeps others out", "[unit][machine]") {
  room r;
  hold& held = r.holds(r.a, writes, start + 5s);
  r.shared.at = context::stage::closed;
  r.who.leave(r.a, held);
  CHECK(r.shared.counters.held == 0);
  CHECK(r.shared.counters.lost == 1);
  CHECK(r.who.keep_out(r.b, reads));
  CHECK_FALSE(r.who.lose(r.a, held, errc::lease_lost));
  CHECK(r.shared.counters.lost == 1);
  r.who.forget(r.a, held);
}

TEST_CASE("active requests: a wanted try keeps nobody waiting, unless it goes by the direct lane", "[unit][machine]") {
  room r;
  r.asks(r.a, ask::acquire, place::shared, writes, true);
  CHECK_FALSE(r.a.ask_.place()->noted());
  r.asks(r.a, ask::acquire, place::direct, writes, true);
  CHECK(r.a.ask_.place()->noted());
  CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), writes));
  r.active.doubt_direct_tries();
  CHECK(r.a.ask_->doubtful);
}

TEST_CASE("active requests: what was sent and is not awaited leaves the name in doubt", "[unit][machine]") {
  for (place const where : {place::shared, place::direct, place::in_doubt}) {
    room r;
    r.asks(r.a, ask::release, where, writes, true);
    CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), writes));
    CHECK(r.active.release_sent());
    r.asks(r.a, ask::release, where, writes, false);
    CHECK(r.active.in_doubt(read_write_kind().rules(), writes));
    CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), writes, &r.a));
    r.asks(r.a, ask::acquire, where, writes, false);
    r.a.ask_.pending().abandoned = true;
    r.active.note(r.a);
    CHECK(r.active.in_doubt(read_write_kind().rules(), writes));
    r.active.forget(r.a);
    CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), writes));
  }
}

TEST_CASE("active requests: of a side that several share it leaves that side alone, if nothing is to be repaired",
          "[unit][machine]") {
  room r;
  r.asks(r.a, ask::release, place::shared, reads, false);
  CHECK(r.active.in_doubt(read_write_kind().rules(), writes));
  CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), reads));
  r.a.ask_.pending().fix = 1;
  CHECK(r.active.in_doubt(read_write_kind().rules(), reads));
}

TEST_CASE("active requests: one release that waits to be sent can take a try along, two cannot", "[unit][machine]") {
  room r;
  r.asks(r.a, ask::release, place::outbox, writes, false);
  CHECK_FALSE(r.active.in_doubt(read_write_kind().rules(), writes));
  CHECK_FALSE(r.active.release_sent());
  CHECK(r.active.unsent_release(r.b) == &r.a);
  CHECK(r.active.unsent_release(r.a) == nullptr);
  CHECK(r.active.dropped_release(r.b));
  CHECK_FALSE(r.active.dropped_release(r.a));
  r.asks(r.b, ask::release, place::outbox, writes, true);
  CHECK(r.active.in_doubt(read_write_kind().rules(), writes));
  CHECK_FALSE(r.active.dropped_release(r.a));
  r.holds(r.a, writes, start);  // not its last
  CHECK(r.active.unsent_release(r.c) == &r.b);
}

namespace {

struct line_of_calls : room {
  wait_queue line;
  operation calls[4];

  line_of_calls() {
    owner_state* const owners[] = {&a, &b, &a, &c};
    for (int i = 0; i < 4; ++i) calls[i].of_owner = owners[i];
  }
};

}  // namespace

TEST_CASE("wait queue: an owner's first call is known, whoever leaves", "[unit][machine]") {
  line_of_calls r;
  CHECK_FALSE(r.line.head_idle());
  for (auto& call : r.calls) r.line.join(call);
  CHECK(r.line.is_head(r.calls[0]));
  CHECK(r.line.head_idle());
  CHECK(r.line.ticket() == r.calls[3].ticket);
  CHECK(r.a.queued == 2);
  CHECK(r.a.waits == &r.calls[0]);
  r.line.leave(r.calls[0]);
  CHECK(r.a.waits == &r.calls[2]);
  CHECK(r.line.is_head(r.calls[1]));
  CHECK(&r.line.before(r.calls[2]) == &r.calls[1]);
  r.line.leave(r.calls[2]);
  CHECK(r.a.queued == 0);
  CHECK(r.a.waits == nullptr);
  r.b.ask_.begin(r.b, {.what = ask::release}, r.shared.spares.requests);
  CHECK_FALSE(r.line.head_idle());
  r.line.leave(r.calls[1]);
  r.line.leave(r.calls[3]);
  CHECK(r.line.empty());
}

TEST_CASE("wait queue: who comes to be the first goes on with the pauses of who was", "[unit][machine]") {
  line_of_calls r;
  for (auto& call : r.calls) r.line.join(call);
  r.calls[0].polls = 5;
  r.calls[2].polls = 7;
  r.line.leave(r.calls[0]);
  CHECK(r.calls[1].polls == 5);
  r.line.leave(r.calls[2]);  // it was not the first
  CHECK(r.calls[3].polls == 0);
  r.calls[1].yes = true;  // it has it: the lock is not free for another reason
  r.line.leave(r.calls[1]);
  CHECK(r.calls[3].polls == 0);
  r.line.leave(r.calls[3]);
}

TEST_CASE("wait queue: calls without a wait are found, and what was heard since a call came is known",
          "[unit][machine]") {
  line_of_calls r;
  r.line.join(r.calls[0]);
  CHECK(r.line.first_once() == r.line.end());
  r.line.note_busy();
  r.calls[1].once = r.calls[3].once = true;
  for (int i = 1; i < 4; ++i) r.line.join(r.calls[i]);
  CHECK(&*r.line.first_once() == &r.calls[1]);
  CHECK(r.line.busy_since_it_joined(r.calls[0]));
  CHECK_FALSE(r.line.busy_since_it_joined(r.calls[1]));
  r.line.leave(r.calls[1]);
  CHECK(&*r.line.first_once() == &r.calls[3]);
  for (int i : {0, 2, 3}) r.line.leave(r.calls[i]);
}

}  // namespace machine_name_parts
