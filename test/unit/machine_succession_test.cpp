#include <machine/context.hpp>
#include <machine/name_machine.hpp>
#include <support/catch.hpp>
#include <support/unit/written_name.hpp>
#include <wire/kinds.hpp>

namespace machine_succession {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// How a lock goes on inside its client, without the machine of its name.

namespace {

// One owner leaves it, a second one waits.
struct room {
  explicit room(kind const& which, bool local_turns = false)
      : shared{config{.local_handoff = {.max_streak = 2, .warm_up = 2}, .local_turns = local_turns}},
        name(shared, at, which, "k"),
        of(shared, at, which, "k") {
    shared.now = instant(std::chrono::hours(1));
    waits.of_owner = &second;
    line.join(waits);
    first.ask_.begin(first, {.what = ask::release, .where = request::place::outbox}, shared.spares.requests);
    name.active_.note(first);
  }
  ~room() {
    line.leave(waits);
    for (owner_state* one : {&first, &second}) name.active_.forget(*one);
  }

  // The server has granted it to the first one.
  void begins() {
    operation call;
    request asked{.what = ask::acquire, .target = 1, .call = &call};
    asked.first_sent = shared.now;
    name.tenure_.granted(first, asked, shared.now + 30s);
  }
  void goes_on(int times) {
    for (int i = 0; i < times; ++i) so_far.count(shared.now);
  }

  context shared;
  home at{shared};
  test::written_name name;
  name_machine of;  // does nothing
  owner_state first{of, 1}, second{of, 2};
  operation waits;
  wait_queue line;
  streak so_far;
  succession onward{name, line, so_far};
};

}  // namespace

TEST_CASE("succession: a release takes the head along until the streak is over", "[unit][machine]") {
  room r(reentrant_kind());
  CHECK(r.onward.hands_off());
  CHECK(r.onward.can_hand_off(r.first));
  r.goes_on(1);
  CHECK(r.onward.can_hand_off(r.first));
  r.goes_on(1);
  CHECK_FALSE(r.onward.can_hand_off(r.first));
  r.so_far.end();
  CHECK(r.onward.can_hand_off(r.first));
  r.shared.at = context::stage::closed;
  CHECK_FALSE(r.onward.can_hand_off(r.first));
}

TEST_CASE("succession: nothing is handed to who leaves, or to who has something under way", "[unit][machine]") {
  room r(reentrant_kind());
  CHECK_FALSE(r.onward.can_hand_off(r.second));
  r.second.ask_.begin(r.second, {.what = ask::extend}, r.shared.spares.requests);
  CHECK_FALSE(r.onward.can_hand_off(r.first));
}

TEST_CASE("succession: in doubt only a head is handed it that was told already that it is busy", "[unit][machine]") {
  room r(reentrant_kind());
  owner_state third(r.of, 3);
  third.ask_.begin(third, {.what = ask::release, .where = request::place::shared}, r.shared.spares.requests);
  r.name.active_.note(third);
  CHECK_FALSE(r.onward.can_hand_off(r.first));
  r.waits.tried = true;
  CHECK(r.onward.can_hand_off(r.first));
  r.name.active_.forget(third);
}

TEST_CASE("succession: it is handed on by the server until turns are many in a row", "[unit][machine]") {
  room r(reentrant_kind(), true);
  CHECK_FALSE(r.onward.can_hand_off(r.first));  // the server may show another one
  r.begins();
  CHECK(r.onward.may_pass(r.first, r.waits));
  CHECK(r.onward.can_hand_off(r.first));
  for (int i = 0; i < 3; ++i) {
    CHECK(r.onward.hands_off());
    CHECK(r.name.tenure_.count_chance() == (i == 2));
  }
  CHECK_FALSE(r.onward.hands_off());
  CHECK_FALSE(r.onward.can_hand_off(r.first));
  CHECK(r.onward.may_pass(r.first, r.waits));
  r.goes_on(2);
  CHECK_FALSE(r.onward.may_pass(r.first, r.waits));
}

TEST_CASE("succession: of kinds that hand nothing off a try leaves right behind the release", "[unit][machine]") {
  for (bool const hands_off : {false, true}) {
    room r(hands_off ? reentrant_kind() : read_write_kind());
    CHECK(r.onward.hands_off() == hands_off);
    CHECK(r.onward.can_hand_off(r.first) == hands_off);
    r.waits.where = operation::place::trying;
    r.second.ask_.begin(r.second, {.what = ask::acquire, .where = request::place::outbox}, r.shared.spares.requests);
    CHECK_FALSE(r.onward.unsent_try());
    r.goes_on(1);
    CHECK(r.onward.unsent_try() == !hands_off);
    r.second.ask_.pending().where = request::place::shared;
    CHECK_FALSE(r.onward.unsent_try());
  }
}

}  // namespace machine_succession
