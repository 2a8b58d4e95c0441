#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <wire/scripts.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Rare turns of events that must leave nothing behind: on the server, in the state of an owner, on the lane.

namespace {

constexpr auto loading = "LOADING Redis is loading the dataset in memory";

// Enters again by this lane, is not answered before its outer hold has lapsed, and has not been run.
void queues_like_everybody(world& w, role lane, task const& outer, task& waiter) {
  w.mute(lane);
  task& again = w.run(w.acquire(1, {.direct = lane == role::direct}));
  w.pass(3'100ms);
  REQUIRE(outer.shown.lost);
  w.mute(lane, false);
  w.await(waiter);
  CHECK_FALSE(again.done());
  w.release(waiter);
  granted(w, again);
  w.finish();
}

}  // namespace

TEST_CASE("rule: a re-entry that was not run, and whose outer hold lapsed meanwhile, gives back") {
  for (bool const before_answer : {true, false}) {
    world w(patient());
    task& outer = hold_kept_longer(w, 1, 5s);  // until 5 s, on the server until 7 s
    w.server.refuse("EVALSHA acquire", loading);
    w.mute(role::shared);
    task& again = w.run(w.acquire(1));
    w.pass(3'100ms);
    REQUIRE(outer.shown.lost);
    if (before_answer) w.cancel(again);
    w.mute(role::shared, false);
    if (!before_answer) {
      w.until([&] { return w.server.ran("EVALSHA acquire") == 3 && w.step(); });
      w.cancel(again);
    }
    w.pass(300ms);
    CHECK(w.server.all().empty());
    w.finish();
  }
}

TEST_CASE("rule: a re-entry that was not run, and whose outer hold lapsed meanwhile, queues like everybody") {
  world w(patient());
  task& outer = hold_kept_longer(w, 1, 5s);
  task& waiter = w.run(w.acquire(2));
  w.server.refuse("EVALSHA acquire", loading);
  queues_like_everybody(w, role::shared, outer, waiter);
}

TEST_CASE("rule: a hand-off whose answer makes no sense gives back for both") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& c = w.run(w.acquire(3));
  w.server.refuse("EVALSHA hand_off", "ERR Error running script: Script killed by user with SCRIPT KILL...");
  CHECK(w.run(w.release(a)).error == errc::server_error);
  CHECK(c.error == errc::server_error);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: a release never takes the time to live of what stays, however little is left") {
  world w;
  task& brief = granted(w, w.acquire(1, {.lease = 5s}));
  task& inner = granted(w, w.acquire(1));
  REQUIRE(brief.trusted(w.now));
  w.now += 5s;  // the timer has run out, and nobody has looked
  w.run(w.release(inner));
  for (auto const& line : w.server.log) CHECK_FALSE(line.ends_with(" 1 0"));
  w.finish();
}

TEST_CASE("rule: the owner state of a lost hold that nobody asked for goes with it") {
  world w;
  w.keeps_history = false;
  constexpr std::uint64_t owners = 1'100;
  for (std::uint64_t owner = 1; owner <= owners; ++owner) {
    task& one = w.acquire(owner, {.lease = 10ms, .leased = false});
    one.ended = true;
    w.await(one);
    w.pass(20ms);
  }
  w.run();
  for (std::uint64_t owner = owners; owner > owners - 1'024; --owner) w.unlock(owner);
  w.run();
  CHECK(w.machine().idle());
}

TEST_CASE("rule: close() leaves nothing to be sent by a borrower whose call has gone") {
  world w;
  warm_up(w, true);
  w.server.flush_scripts();
  w.mute(role::direct);
  task& gone = w.run(w.acquire(1, {.direct = true}));
  auto const said = w.server.log.size();
  w.close();
  CHECK(gone.error == errc::closed);
  w.mute(role::direct, false).run();
  for (auto i = said; i < w.server.log.size(); ++i) UNSCOPED_INFO(w.server.log[i]);
  CHECK(w.server.log.size() == said);
}

TEST_CASE("rule: a borrower whose caller has left does not send the text of the script") {
  world w;
  warm_up(w, true);
  w.server.flush_scripts();
  w.mute(role::direct);
  task& gone = w.run(w.acquire(1, {.direct = true}));
  w.cancel(gone);
  auto const before = w.server.ran("EVAL acquire");
  w.mute(role::direct, false).run();
  CHECK(w.server.ran("EVAL acquire") == before);
  w.finish();
}

TEST_CASE("rule: a borrower's re-entry whose outer hold lapsed meanwhile queues like everybody") {
  world w(patient());
  warm_up(w, true);
  task& outer = hold_kept_longer(w, 1, 5s);
  task& waiter = w.run(w.acquire(2));
  w.server.flush_scripts();
  queues_like_everybody(w, role::direct, outer, waiter);
}

TEST_CASE("rule: a refused acquire that took the place of an unsent release gives back") {
  world w;
  w.drop(granted(w, w.acquire(1)));
  w.server.answer_with(detail::reentrant_acquire(), "return {'ERR value is not an integer'}");
  CHECK(w.await(w.once(1)).error == errc::server_error);
  w.run();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: a refused PING on the message link is no refused SUBSCRIBE, and not the last PING") {
  world w;
  task& waits = sleeper(w, 1, 600'000);
  w.server.refuse("PING", "NOPERM this user has no permissions to run the 'ping' command", -1);
  w.pass(100s);
  CHECK(w.noted(event_type::subscribe_refused) == 0);
  w.server.accept_all();
  w.lose(role::messages, fate::silent);
  int const before = w.opened;
  w.pass(60s);
  CHECK(w.opened > before);
  w.cancel(waits);
}

namespace {

// The item of the script is refused; `twice`: it has two parts.
void refuse_item(world& w, detail::script const& text, bool twice) {
  std::string const no = "\"READONLY You can't write against a read only replica.\"";
  w.server.answer_with(text, "return {" + (twice ? "{" + no + ", " + no + "}" : no) + "}");
}

}  // namespace

TEST_CASE("rule: a try that is refused after an unanswered copy is given back") {
  world w;
  warm_up(w);
  task& a = *leave_unanswered(w, role::shared, [&] { return &w.once(1); });
  REQUIRE(w.server.has("k", w.field(1)));
  refuse_item(w, detail::reentrant_acquire(), false);
  w.pass(3s);
  CHECK(a.error == errc::connection_lost);  // what the first copy did is not known to its caller
  CHECK(a.text.starts_with("READONLY"));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.finish();
}

TEST_CASE("rule: a grant that is refused after an unanswered copy of its hand-off is given back") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  leave_unanswered(w, role::shared, [&] { w.release(a); });
  REQUIRE(w.server.has("k", w.field(2)));
  refuse_item(w, detail::reentrant_hand_off(), true);
  refuse_item(w, detail::reentrant_acquire(), false);
  w.pass(1s);
  w.cancel(b);
  w.pass(3s);  // the pause before the next connection
  CHECK_FALSE(w.server.has("k", w.field(2)));
  w.finish();
}
