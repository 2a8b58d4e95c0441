#include <support/catch.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("sweep: one-shot calls while others try and wait") {
  sweep({.play = [](world& w) {
    task& a = w.acquire(1);
    task& b = w.once(2);
    task& c = w.acquire(3);
    task& d = w.once(4, {.direct = true});
    w.await(a, b, d);
    w.expect(a.granted() && b.busy() && d.busy() && !c.done(), "one has it, the one-shots are told so");
    if (a.granted()) w.await(w.release(a));
    w.await(c);
    task& e = w.await(w.once(5));
    w.expect(c.granted() && e.busy(), "the waiter has it");
  }});
}

TEST_CASE("sweep: one-shot calls at a stranger's lock") {
  sweep({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 40'000);
    task& a = w.once(1);
    task& b = w.once(2, {.direct = true});
    w.await(a, b);
    w.expect(a.busy() && b.busy(), "busy");
    w.server.stranger_releases("k", "stranger:1");
    task& c = w.await(w.once(3, {.direct = true}));
    w.expect(c.granted(), "free");
  }});
}

TEST_CASE("sweep: tasks that share an owner do not exclude each other") {
  sweep({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 5'000);
    task& a = w.acquire(1);
    task& b = w.acquire(1, {.direct = true});
    task& other = w.acquire(2);
    task& c = w.acquire(1);
    for (task* one : {&a, &b, &c}) w.await(*one);
    w.expect(a.granted() && b.granted() && c.granted() && !other.done(), "all three re-enter");
    w.expect(w.server.count("k", w.field(1)) == 3, "three holds");
    for (task* one : {&a, &b, &c})
      if (one->granted() && !one->shown.lost) w.release(*one);
    w.await(other);
    w.expect(other.granted(), "then the other one");
  }});
}

TEST_CASE("sweep: max_hold ends the hold, on the server too") {
  for (milliseconds const bound : {500ms, 25'000ms, 30'000ms, 31'000ms, 65'000ms})
    sweep({.play = [bound](world& w) {
      task& one = w.await(w.acquire(1, {.max_hold = bound}));
      auto const end = detail::after(one.done_at, bound);
      auto const rest = [&] { return std::chrono::floor<milliseconds>(end - w.now); };
      for (int i = 8; i > 0; --i) {
        if (one.granted() && one.shown.until() > end) w.fail("trusted for longer than max_hold");
        w.expect(w.now + milliseconds(w.server.ttl("k")) <= end, "the server does not keep it for longer");
        w.pass((rest() - 2ms) / i);
      }
      w.expect(one.losses == 0, "renewed until then");
      w.pass(rest() + 1ms);
      w.expect(one.losses == 1, "and lost");
      w.expect(!w.server.has("k", w.field(1)), "free");
      if (one.granted()) w.drop(one);
    }});
}

TEST_CASE("sweep: of an owner's holds the longest counts, and what max_hold bounds ends alone") {
  sweep({.play = [](world& w) {
    task& bounded = w.await(w.acquire(1, {.max_hold = 12s}));
    task& fixed = w.await(w.acquire(1, {.lease = 20s}));
    task& renewed = w.await(w.acquire(1));
    w.pass(13s);
    w.expect(bounded.losses == 1 && fixed.trusted(w.now) && renewed.trusted(w.now), "one is lost");
    w.expect(w.server.count("k", w.field(1)) == 2, "two are there");
    if (renewed.granted() && !renewed.shown.lost) w.release(renewed);
    w.run();
    w.expect(w.server.ttl("k") <= 7'000, "as long as the fixed one needs");
    w.pass(8s);
    w.expect(fixed.losses == 1 && !w.server.has("k", w.field(1)), "over");
  }});
}

TEST_CASE("sweep: questions") {
  sweep({.play = [](world& w) {
    using detail::query;
    w.await(w.acquire(1, {.lease = 15s}));
    task& locked = w.ask(query::is_locked);
    task& held = w.ask(query::is_held_by, 1, {.direct = true});
    task& count = w.ask(query::hold_count, 1);
    task& time = w.ask(query::time_to_live);
    for (task* asked : {&locked, &held, &count, &time}) w.await(*asked);
    w.expect(locked.value == 1 && held.value == 1 && count.value == 1 && time.value == 15'000, "held");
    task& none = w.await(w.ask(query::time_to_live, 0, {.name = "other"}));
    w.expect(none.value == -2, "free");
  }});
}

TEST_CASE("sweep: close with a holder, waiters and a question") {
  sweep({.play = [](world& w) {
    task& a = w.await(w.acquire(1));
    task& b = w.acquire(2);
    task& c = w.acquire(3, {.name = "other"});
    task& d = w.ask(detail::query::is_locked);
    w.close();
    for (task* one : {&b, &d})
      if (one->error != errc::closed) w.fail(one->label + " was not told of the end");
    if (!c.done()) w.fail("a caller still waits after the end");
    w.expect(a.losses == 1 && a.why_lost == errc::closed, "the holder is told");
    task& late = w.acquire(4);
    if (late.error != errc::closed) w.fail("a call after the end");
  }});
}

TEST_CASE("sweep: scripts are forgotten by the server") {
  sweep({.play = [](world& w) {
    w.server.flush_scripts();
    task& a = w.acquire(1);
    task& b = w.acquire(2, {.name = "other", .direct = true});
    w.await(a, b);
    w.server.flush_scripts();
    if (a.granted()) w.await(w.release(a, true));
    if (b.granted()) w.await(w.release(b));
    w.expect(a.granted() && b.granted() && w.server.ran("EVAL acquire") == 1 && w.server.ran("EVAL release") >= 1,
             "the text goes once");
  }});
}

TEST_CASE("sweep: what is asked in one turn leaves in one call per script") {
  sweep_one_server({.play = [](world& w) {
    task& warm = w.await(w.acquire(1, {.name = "warm"}));
    std::size_t const before = w.server.ran("EVALSHA");
    std::vector<task*> all;
    for (int i = 0; i < 20; ++i) all.push_back(&w.acquire(1, {.name = "k" + std::to_string(i)}));
    for (task* one : all) w.await(*one);
    w.expect(w.server.ran("EVALSHA") == before + 1, "one call for twenty locks");
    if (warm.granted()) w.drop(warm);
    for (task* one : all)
      if (one->granted()) w.drop(*one);
    w.run();
    w.expect(w.server.ran("EVALSHA") == before + 2, "one call to release them all");
  }});
}

TEST_CASE("sweep: watchdog renewals over several periods") {
  sweep_one_server({.play = [](world& w) {
    task& a = w.acquire(1);
    task& b = w.acquire(2, {.name = "other", .direct = true});
    w.await(a, b);
    task& waiter = w.acquire(3, {.wait = 65s});
    w.pass(65s);
    w.expect(a.losses == 0 && b.losses == 0 && w.server.ran("EVALSHA renew") == 6, "six periods, one call each");
    w.expect(waiter.busy(), "never free meanwhile");
  }});
}
