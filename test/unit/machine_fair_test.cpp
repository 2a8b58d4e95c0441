// The fair lock in the machines, against a modelled server that does what its scripts do.
#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr auto queue = "redisson_lock_queue:{k}", scores = "redisson_lock_timeout:{k}";

// Who stands in the queue of the server, in order.
std::vector<std::string> line(world& w) { return w.server.list(queue); }

std::int64_t score(world& w, std::uint64_t owner) {
  return std::stoll(w.server.ask({"ZSCORE", scores, w.field(owner)}).text);
}

how in_line(milliseconds wait = -1ms, std::size_t client = 0) {
  return {.wait = wait, .client = client, .which = &detail::fair_kind()};
}

}  // namespace

TEST_CASE("fair lock: served in the order of arrival over two clients, by one message each", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  std::vector<task*> all{&granted(w, w.acquire(1, in_line()))};
  for (std::uint64_t i = 2; i <= 6; ++i) {
    all.push_back(&w.acquire(i, in_line(-1ms, i % 2)));
    w.run();
  }
  CHECK(line(w).size() == 5);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    CHECK_FALSE(all[i + 1]->done());
    w.run(w.release(*all[i]));
    CHECK(all[i + 1]->granted());
  }
  w.run(w.release(*all.back()));
  CHECK(line(w).empty());
  w.finish();
}

TEST_CASE("fair lock: a release passes it on inside the client only if that one is first over all clients",
          "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& a = granted(w, w.acquire(1, in_line()));
  task& b = w.run(w.acquire(2, in_line()));
  task& other = w.run(w.acquire(3, in_line(-1ms, 1)));
  task& d = w.run(w.acquire(4, in_line()));
  w.run(w.release(a));
  CHECK(b.granted());
  CHECK(w.snapshot().handed_off == 1);
  CHECK(w.server.ran("(publish)") == 0);
  w.release(b);  // the next of this client is not the next of all
  w.run();
  CHECK(other.granted());
  CHECK_FALSE(d.done());
  CHECK(w.snapshot().handed_off == 1);
  CHECK(w.server.ran("(publish)") == 1);
  CHECK(line(w) == std::vector{w.field(4)});
  w.run(w.release(other));
  CHECK(d.granted());
  w.release(d);
  w.finish();
}

TEST_CASE("fair lock: a caller whose time is over takes no wake-up with him that another of his owner needs",
          "[unit][machine]") {
  world w;
  w.server.stranger_takes("k", stranger, 1'500);
  task& late = w.acquire(2, in_line(1'100ms));
  task& stays = w.run(w.acquire(2, in_line()));
  w.now += 1'400ms;  // the process stood still: the next look and the end of the wait are due at once
  w.pass(2s);
  CHECK_FALSE(late.granted());
  CHECK(late.done());
  CHECK(stays.granted());
  w.release(stays);
  w.finish();
}

TEST_CASE("fair lock: a release takes an unsent try along, and whoever is first gets it", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& a = granted(w, w.acquire(1, in_line()));
  task& theirs = w.run(w.acquire(2, in_line(-1ms, 1)));
  task& b = w.acquire(3, in_line());  // leaves in one turn with the release
  w.run(w.release(a));
  CHECK(theirs.granted());
  CHECK_FALSE(b.done());
  CHECK(line(w) == std::vector{w.field(3)});
  w.run(w.release(theirs));
  CHECK(b.granted());
  w.release(b);
  w.finish();
}

TEST_CASE("fair lock: who does not hear yet when the lock comes free keeps its place", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& a = granted(w, w.acquire(1, in_line()));
  w.mute(role::messages, true, 1);
  w.deafen(role::messages, true, 1);
  task& b = w.run(w.acquire(2, in_line(-1ms, 1)));
  task& c = w.run(w.acquire(3, in_line(-1ms, 1)));
  task& d = w.run(w.acquire(4, in_line()));
  // Nobody listens for the first two: they may be dead. They look for themselves before that is decided, and what a
  // grant takes off their time leaves them enough.
  w.release(a);
  w.pass(500ms);
  REQUIRE(b.granted());
  w.release(b);
  w.pass(500ms);
  REQUIRE(c.granted());
  CHECK_FALSE(d.done());
  w.run(w.release(c));
  CHECK(d.granted());
  w.release(d);
  w.mute(role::messages, false, 1);
  w.deafen(role::messages, false, 1);
  w.finish();
}

TEST_CASE("fair lock: a waiter leaves with the time that it entered with", "[unit][machine]") {
  world w;
  task& a = granted(w, w.acquire(1, in_line()));
  auto brief = in_line(7s);
  brief.line_time = 7s;
  task& b = w.run(w.acquire(2, brief));
  task& other = w.acquire(2, in_line());  // the same owner: it stands there already
  task& c = w.run(w.acquire(3, in_line()));
  auto const& log = w.server.log;
  auto const ran = [&](std::string const& script, std::string const& end) {
    return std::any_of(log.begin(), log.end(), [&](auto const& line) {
      return line.find(" " + script + " ") != line.npos && line.ends_with(end);
    });
  };
  CHECK(ran("fair_acquire", w.field(2) + " 1 30000 7000 1 publish"));
  CHECK(ran("fair_acquire", w.field(3) + " 1 30000 300000 1 publish"));
  auto const last = score(w, 3);
  CHECK(last == score(w, 2) + 300'000);
  w.cancel(b);
  w.cancel(other).run();
  CHECK(ran("fair_leave", w.field(2) + " 7000 publish"));
  CHECK(score(w, 3) == last - 7'000);
  w.run(w.release(a));
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("fair lock: a dead head costs the others its grace where nobody listens for it", "[unit][machine]") {
  world w;
  task& a = granted(w, w.acquire(1, in_line()));
  w.server.ask({"RPUSH", queue, "dead:1"});
  w.server.ask({"ZADD", scores, "1000000000", "dead:1"});
  task& b = w.run(w.acquire(2, in_line()));
  w.release(a);
  w.pass(699ms);
  CHECK_FALSE(b.done());
  w.pass(25ms);
  CHECK(b.granted());
  // It looks every 20 ms, and does not wake itself by telling whoever is first.
  CHECK(w.server.ran("EVALSHA fair_acquire") < 45);
  w.release(b);
  w.finish();
}

TEST_CASE("fair lock: many who died together cost who waits behind them less than a second for eight",
          "[unit][machine]") {
  constexpr int dead = 100;
  world w;
  task& a = granted(w, w.acquire(1, in_line()));
  for (int i = 0; i < dead; ++i) {
    w.server.ask({"RPUSH", queue, "dead:" + std::to_string(i)});
    w.server.ask({"ZADD", scores, std::to_string(1'000'000'000 + i), "dead:" + std::to_string(i)});
  }
  task& b = w.run(w.acquire(2, in_line()));
  w.release(a);
  w.pass(10s);  // then it looks, so far from the head
  CHECK_FALSE(b.done());
  w.pass(1s * dead / 8);
  CHECK(b.granted());
  if (b.granted()) w.release(b);
  w.finish();
}

TEST_CASE("sweep: fair lock: waiters of two clients, one of whom gives up") {
  sweep_one_server({.play = [](world& w) { one_gives_up(w, detail::fair_kind(), queue); }, .clients = 2});
}

TEST_CASE("sweep: fair lock: re-entry, a one-shot, and a second turn of the same owner") {
  sweep_one_server({.play =
                        [](world& w) {
                          task& a = w.await(w.acquire(1, in_line()));
                          task& again = w.await(w.acquire(1, in_line()));
                          task& b = w.run(w.acquire(2, in_line(-1ms, 1)));
                          task& once = w.await(w.once(3, in_line()));
                          w.expect(once.busy(), "somebody has it");
                          if (again.granted()) w.release(again);
                          if (a.granted()) w.release(a);
                          w.await(b);
                          w.expect(b.granted(), "after the last release");
                          task& back = w.run(w.acquire(1, in_line()));
                          if (b.granted()) w.release(b);
                          w.await(back);
                          w.expect(back.granted(), "its next turn");
                          if (back.granted()) w.drop(back);
                          w.resolve();
                          if (!line(w).empty()) w.fail("left in the queue of the server: " + line(w).front());
                        },
                    .clients = 2});
}

TEST_CASE("fair lock: who leaves the client's queue because another was granted leaves the server's, too",
          "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& held = granted(w, w.acquire(1, in_line(-1ms, 1)));
  w.acquire(2, in_line());
  task& waited = w.acquire(3, in_line(1'400ms));
  task& tried = w.once(3, in_line());  // one request of an owner at a time: it waits for the first one's turn
  w.run(w.acquire(2, in_line()));
  REQUIRE(line(w).size() == 2);
  w.pass(1'401ms);
  REQUIRE(waited.busy());
  REQUIRE_FALSE(tried.done());
  w.run(w.release(held));
  CHECK(tried.busy());
  CHECK(line(w).empty());
  w.finish();
}

TEST_CASE("fair lock: those far from the head look seldom, and each is served by its message", "[unit][machine]") {
  constexpr std::size_t many = 2'000 / slowness;
  world w({.local_handoff = {.max_streak = 0}}, 2);
  w.keeps_history = false;
  w.most_steps = 1'000'000;
  task& held = granted(w, w.acquire(1, in_line(-1ms, 1)));
  std::vector<task*> all;
  for (std::uint64_t i = 2; i < many + 2; ++i) all.push_back(&w.acquire(i, in_line()));
  w.run();
  CHECK(line(w).size() == many);
  auto const tries = w.snapshot().scripts;
  auto const calls = w.snapshot().commands;
  w.pass(10s);
  auto const commands = w.snapshot().commands - calls;
  CHECK(line(w).size() == many);
  CHECK(w.snapshot().scripts - tries <= 2 * many / 5);
  CHECK(commands <= 500);  // most leave together
  w.release(held);
  for (std::size_t i = 0; i < 50; ++i) {
    w.run();
    REQUIRE(all[i]->granted());
    w.release(*all[i]);
  }
  for (task* one : all)
    if (!one->done()) w.cancel(*one);
  w.run();
  for (task* one : all)
    if (one->granted() && !one->ended) w.release(*one);
  w.finish();
}

TEST_CASE("fair lock: who hears nothing comes by himself before the server passes him over, however far he stands") {
  world w(seen_by_the_server(), 2);
  w.server.refuse("SUBSCRIBE", "NOPERM no channel", -1);
  task& held = granted(w, w.acquire(1, in_line(-1ms, 1)));
  std::vector<task*> all;
  for (std::uint64_t i = 2; i < 102; ++i) all.push_back(&w.acquire(i, in_line()));
  w.run();
  w.pass(2s);
  auto const tries = w.snapshot().scripts;
  w.pass(2s);
  CHECK(w.snapshot().scripts - tries >= 100 * 2 * 1'000 / 401);
  w.release(held);
  w.pass(500ms);
  CHECK(all.front()->granted());
  for (task* one : all)
    if (!one->done()) w.cancel(*one);
  w.run();
  for (task* one : all)
    if (one->granted()) w.release(*one);
  w.finish();
}

// Their channels are those of a server, and of both one has to go first. (A sanitizer sees it.)
TEST_CASE("fair lock: a client goes while its callers wait", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  granted(w, w.acquire(1, in_line(-1ms, 1)));
  auto& first = w.acquire(2, in_line());
  auto& second = w.run(w.acquire(3, in_line()));
  CHECK(w.snapshot().subscriptions == 2);
  CHECK_FALSE(first.done());
  CHECK_FALSE(second.done());
}

TEST_CASE("fair lock: those who give up while a call walks a long line leave together, in the next",
          "[unit][machine]") {
  std::uint64_t const waiters = GENERATE(10u, 60u);
  bool const is_long = waiters > 50;
  world w(seen_by_the_server());
  w.server.stranger_takes("k", stranger, 60'000);
  std::vector<task*> all;
  for (std::uint64_t i = 0; i < waiters; ++i) all.push_back(&w.acquire(i + 1, in_line()));
  w.run();
  REQUIRE(line(w).size() == waiters);
  w.mute(role::shared);
  w.cancel(*all[0]).run();
  auto const before = w.snapshot().scripts;
  for (std::size_t i = 1; i <= 3; ++i) w.cancel(*all[i]).run();
  CHECK(w.snapshot().scripts == before + (is_long ? 0 : 3));
  w.mute(role::shared, false).run();
  CHECK(w.snapshot().scripts == before + (is_long ? 1 : 3));
  CHECK(line(w).size() == waiters - 4);
  w.finish();
}
