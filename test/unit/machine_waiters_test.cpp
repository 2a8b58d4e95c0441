#include <machine/context.hpp>
#include <machine/name_machine.hpp>
#include <support/catch.hpp>
#include <support/unit/written_name.hpp>
#include <wire/kinds.hpp>

#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::detail;
using latchkey::test::written_name;
using namespace std::chrono_literals;

// Who waits for a name and what makes him ask, without the machine of that name.

namespace {

using said = std::vector<std::string>;

template <class Waiters>
struct queue_of {
  explicit queue_of(kind const& which) : name(shared, at, which, "k"), of(shared, at, which, "k"), waiters(name) {
    shared.out = &out;
    shared.now = instant(std::chrono::hours(1));
    channels.connected();
  }
  ~queue_of() {
    for (operation* const call : {&a, &b, &c}) waiters.leave(*call);
    waiters.close();
  }

  said take() { return std::exchange(name.asked, {}); }
  said join(operation& call, owner_state& who) {
    call.owner = who.owner;
    call.of_owner = &who;
    waiters.join(who, call);
    return take();
  }
  said busy(operation& call, std::int64_t hint = 20'000) {
    request const was = *call.of_owner->ask_;
    call.of_owner->ask_.end(name.shared_.spares.requests);
    waiters.refused(*call.of_owner, was, hint);
    return take();
  }
  said confirm(std::string const& channel) {
    channels.take_unsent();
    channels.confirmed(channel);
    return take();
  }
  said tell(std::string const& channel) {
    channels.message(channel, "0");
    return take();
  }

  context shared{config{}};
  actions out;
  home at{shared};
  subscriptions& channels = at.channels;
  written_name name;
  name_machine of;  // does nothing
  owner_state one{of, 1}, two{of, 2}, three{of, 3};
  operation a, b, c;
  Waiters waiters;
};

}  // namespace

TEST_CASE("waiters of a shared channel: the head asks for all, and a message makes it ask again", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  std::string const channel = reentrant_kind().channel("k", {});
  CHECK(q.join(q.a, q.one) == said{"direct 1"});
  CHECK(q.join(q.b, q.two).empty());
  CHECK(q.busy(q.a).empty());
  CHECK(q.channels.size() == 1);
  CHECK(q.shared.timers.first() == q.shared.now + 20'001ms);
  CHECK(q.confirm(channel) == said{"try 1"});
  CHECK(q.busy(q.a).empty());
  CHECK(q.tell(channel) == said{"try 1"});
  CHECK(q.tell(channel).empty());  // it is trying
  CHECK(q.waiters.heard());
  CHECK(q.busy(q.a) == said{"try 1"});
  CHECK_FALSE(q.waiters.heard());
  q.busy(q.a);
  q.waiters.leave(q.a);
  q.waiters.new_head();
  CHECK(q.take() == said{"try 2"});
}

TEST_CASE("waiters of a shared channel: whoever does not wait is told what the head was told", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  q.join(q.a, q.one);
  q.b.once = true;
  CHECK(q.join(q.b, q.two).empty());  // nobody knows yet
  CHECK(q.busy(q.a) == said{"told 2"});
  q.c.once = true;
  CHECK(q.join(q.c, q.three) == said{"told 3"});
  CHECK(q.c.waited);
}

TEST_CASE("waiters of a shared channel: the channel is given up a second after the last of them", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  q.join(q.a, q.one);
  q.busy(q.a);
  q.waiters.leave(q.a);
  CHECK_FALSE(q.waiters.idle());
  REQUIRE(q.shared.timers.first() == q.shared.now + 1s);
  auto* const last = static_cast<timer_node*>(q.shared.timers.take_due(q.shared.now + 1s));
  REQUIRE(last);
  static_cast<shared_channel_waiters*>(last->of)->on_linger();
  CHECK(q.waiters.idle());
  CHECK(q.channels.size() == 0);
}

TEST_CASE("waiters with channels of their own: each asks for itself and hears what is meant for it",
          "[unit][machine]") {
  queue_of<own_channel_waiters> q(fair_kind());
  auto const channel_of = [&](owner_state const& one) { return fair_kind().channel("k", q.name.field_of(one, 0)); };
  CHECK(q.join(q.a, q.one) == said{"direct 1"});
  CHECK(q.join(q.b, q.two) == said{"try 2"});
  CHECK(q.busy(q.a).empty());
  CHECK(q.busy(q.b).empty());
  CHECK(q.channels.size() == 2);
  q.channels.take_unsent();
  CHECK(q.tell(channel_of(q.two)) == said{"try 2"});
  CHECK(q.tell(channel_of(q.two)).empty());
  CHECK(q.two.own->dirty);
  CHECK(q.busy(q.b) == said{"try 2"});
  q.busy(q.b);
  q.waiters.leave(q.b);
  CHECK(q.channels.size() == 1);  // who leaves stops listening at once
}

TEST_CASE("waiters: whoever cannot be heard looks by himself", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  q.join(q.a, q.one);
  q.shared.unpublished = true;
  q.busy(q.a);
  CHECK(q.shared.timers.first() <= q.shared.now + 1'001ms);
}

TEST_CASE("waiters: can be forgotten as soon as they know of nobody", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  CHECK(q.waiters.forgettable());
  q.waiters.turns().count(q.shared.now);
  CHECK_FALSE(q.waiters.forgettable());
  q.waiters.turns().end();
  CHECK_FALSE(q.waiters.forgettable());  // the answer to the release will ask for the streak
  q.waiters.turns().end();
  CHECK(q.waiters.forgettable());
  q.join(q.a, q.one);
  CHECK_FALSE(q.waiters.forgettable());
  q.busy(q.a);
  q.waiters.leave(q.a);
  CHECK_FALSE(q.waiters.forgettable());  // it listens for the next one
  q.waiters.on_linger();
  CHECK(q.waiters.forgettable());
  q.waiters.remember(wake_up::message);
  CHECK_FALSE(q.waiters.forgettable());
}

TEST_CASE("waiters: calls are numbered on where others were forgotten", "[unit][machine]") {
  queue_of<shared_channel_waiters> q(reentrant_kind());
  q.join(q.a, q.one);
  q.shared.last_ticket = q.waiters.queue().ticket();
  shared_channel_waiters next(q.name);
  CHECK(next.queue().ticket() == q.a.ticket);
}
