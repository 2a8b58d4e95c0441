// The fair lock's queue on a real server: who leaves it, who is put out of it, and what mends it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/redisson_fair.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <signal.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kind_fair_line {

using namespace latchkey;
using namespace latchkey::test;
using names = std::vector<std::string>;

namespace {

constexpr milliseconds soon = 1s * slowness;  // bound of what no message announces
constexpr milliseconds passed_over = 700ms;   // so long who does not listen keeps others waiting

// False if the waiter looked by itself between its coming to the head and its end, once a second: then the lock is its.
bool leaves_at_the_head() {
  fair_world w;
  lease held = w.fair.acquire();
  redisson_fair silent(common_server(), w.name, "java:1");
  silent.subscribe();
  w.enter("java:1", 300s);
  w.enter("java:2", 300s);
  client going(common_server().uri(), steady_config());
  auto first = going.get_fair_lock(w.name).async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.line().size() == 3; }));
  auto const leaver = w.line().at(2);
  REQUIRE(w.listening(leaver));
  auto const me = owner::make();
  auto second = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  held.release();
  // Free, and the first one does not move. The third is put at its place.
  REQUIRE(silent.hear(patience));
  auto const heard = w.own.snapshot().messages;
  w.admin.ok("EVAL", "redis.call('zrem', KEYS[2], 'java:1', 'java:2') return redis.call('lpop', KEYS[1], 2)", 2,
             w.queue, w.scores);
  going.close();
  auto const ended = error_in(std::move(first));
  if (!ended) return false;
  CHECK(ended == errc::closed);
  CHECK(wait_until([&] { return w.own.snapshot().messages > heard; }));
  value_of(std::move(second)).release();
  CHECK(w.nothing_left());
  return true;
}

}  // namespace

TEST_CASE("fair lock: who gives up leaves the queue, and those behind get the time back", "[server][fair]") {
  fair_world w;
  lease held = w.fair.acquire();
  auto const a = owner::make(), b = owner::make();
  // Cancelled on the client's own thread, as a slot wants it.
  asio::cancellation_signal signal;
  std::promise<error_code> ended;
  w.fair.async_acquire({.wait = 100s, .owner = a},
                       asio::bind_cancellation_slot(signal.slot(), [&](error_code e, lease) { ended.set_value(e); }));
  REQUIRE(w.listening(a));
  auto second = w.fair.async_acquire({.owner = b}, asio::use_future);
  REQUIRE(w.listening(b));
  auto const before = w.score(b);
  asio::post(w.own.get_executor(), [&] { signal.emit(asio::cancellation_type::all); });
  CHECK(value_of(ended.get_future()) == asio::error::operation_aborted);
  CHECK(wait_until([&] { return w.line() == names{w.field(b)}; }));
  CHECK(w.score(b) == before - 100'000);
  CHECK(w.score(a) == 0);
  // Nobody listens for it any more.
  CHECK(wait_until([&] { return w.admin.listeners_at(w.channel + ":" + w.field(a)) == 0; }));
  held.release();
  value_of(std::move(second)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a wait that ends leaves the queue, for blocking and for asynchronous callers", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  lease held = other.get_fair_lock(w.name).acquire();
  w.own.connect();
  CHECK_FALSE(w.fair.try_lock(brief_wait));
  CHECK(wait_until([&] { return w.line().empty(); }));
  CHECK_FALSE(value_of(w.fair.async_try_lock(owner::make(), brief_wait, asio::use_future)));
  CHECK_FALSE(value_of(w.fair.async_acquire({.wait = brief_wait}, asio::use_future)));
  CHECK(wait_until([&] { return w.line().empty() && w.admin.integer("ZCARD", w.scores) == 0; }));
  CHECK(w.own.snapshot().waiting == 0);
  held.release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a client that is closed takes its waiters out of the queue and tells the next one",
          "[server][fair]") {
  fair_world w;
  redisson_fair peer(common_server(), w.name, "peer:1");
  REQUIRE(peer.acquire());
  std::optional<client> going(std::in_place, common_server().uri(), steady_config());
  std::vector<std::future<lease>> theirs;
  std::string const id = going->id();
  for (int i = 0; i < 3; ++i) theirs.push_back(going->get_fair_lock(w.name).async_acquire(asio::use_future));
  REQUIRE(wait_until([&] { return w.line().size() == 3; }));
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  // The lock comes free without a word, and is not theirs: they are gone before they look again.
  going->close();
  CHECK(w.line() == names{w.field(me)});
  for (auto& one : theirs) CHECK(error_in(std::move(one)) == errc::closed);
  CHECK(peer.unlock() == 1);
  value_of(std::move(waiting)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: who leaves while the lock is free tells the new first one", "[server][fair]") {
  int tries = 1;
  while (!leaves_at_the_head()) REQUIRE(++tries <= 5);
}

TEST_CASE("fair lock: who listens keeps its place until its time is over, who does not is soon passed over",
          "[server][fair]") {
  fair_world w;
  lease held = w.fair.acquire();
  auto silent = std::make_unique<redisson_fair>(common_server(), w.name, "java:1");
  silent->subscribe();
  w.enter("java:1", 300s);
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  held.release();
  CHECK(waiting.wait_for(2 * soon) == std::future_status::timeout);
  CHECK(w.line() == names{"java:1", w.field(me)});
  CHECK(w.score("java:1") > w.now() + 200'000);
  stopwatch since;
  auto const before = w.own.snapshot().scripts;
  silent.reset();
  value_of(std::move(waiting)).release();
  CHECK(since.passed() < passed_over + soon);
  CHECK(w.own.snapshot().scripts - before < 160);  // it looks every 20 ms meanwhile
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: waiters whose process was killed cost the next one less than a second in all", "[server][fair]") {
  std::vector<std::unique_ptr<child_process>> dying;
  for (int i = 0; i < 3; ++i)
    dying.push_back(std::make_unique<child_process>([uri = common_server().uri()](auto& up) {
      auto const name = up.hear();
      client own(uri, steady_config());
      auto waiting = own.get_fair_lock(name).async_acquire(asio::use_future);
      up.hear();
      return 0;
    }));
  fair_world w;
  lease held = w.fair.acquire();
  for (auto const& one : dying) one->talk().say(w.name);
  REQUIRE(wait_until([&] { return w.line().size() == 3; }));
  for (auto const& one : w.line()) REQUIRE(w.listening(one));
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  for (auto& one : dying) one->send_signal(SIGKILL);
  for (auto& one : dying) CHECK(one->wait() == 128 + SIGKILL);
  REQUIRE(wait_until([&] { return w.admin.ok("PUBSUB", "CHANNELS", w.channel + ":*").elements.size() == 1; }));
  stopwatch since;
  held.release();
  value_of(std::move(waiting)).release();
  CHECK(since.passed() < passed_over + soon);
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a silent first waiter of another library costs its own time and no more", "[server][fair]") {
  fair_world w;
  // It listens, so that it is taken for alive until its time is over.
  redisson_fair silent(common_server(), w.name, "java:1");
  silent.subscribe();
  lease held = w.fair.acquire();
  auto const alive = 2s * slowness;
  stopwatch since;
  w.enter("java:1", alive);
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  held.release();
  CHECK(silent.hear(patience));
  value_of(std::move(waiting)).release();
  CHECK(since.passed() > alive - 100ms);
  CHECK(since.passed() < alive + soon);
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a first waiter of another library that leaves without a word does not keep the lock idle",
          "[server][fair]") {
  fair_world w;
  redisson_fair silent(common_server(), w.name, "java:1");
  lease held = w.fair.acquire();
  REQUIRE_FALSE(silent.acquire());
  silent.subscribe();
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  held.release();
  REQUIRE(silent.hear(patience));
  stopwatch since;
  silent.give_up();
  value_of(std::move(waiting)).release();
  CHECK(since.passed() < soon);
}

TEST_CASE("fair lock: a live waiter keeps its place for longer than its time", "[server][fair]") {
  fair_world w;
  auto settings = steady_config();
  settings.fair_lock_wait_timeout = 1s + 500ms * slowness;
  client brief(common_server().uri(), settings);
  redisson_fair peer(common_server(), w.name, "java:1"), late(common_server(), w.name, "java:2");
  REQUIRE(peer.acquire());
  auto waiting = brief.get_fair_lock(w.name).async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.line().size() == 1; }));
  auto const first = w.line().front();
  REQUIRE(w.listening(first));
  // So long it would last if it were silent. Then any look of another one would put it out.
  auto const end = w.now() + settings.fair_lock_wait_timeout.count();
  w.admin.ok("ZADD", w.scores, end, first);
  REQUIRE(wait_until([&] { return !late.acquire() && w.now() > end; }));
  CHECK_FALSE(late.acquire());
  CHECK(w.line() == names{first, "java:2"});
  late.give_up();
  CHECK(w.fair.force_unlock());
  value_of(std::move(waiting)).release();
}

TEST_CASE("fair lock: what a grant takes off the scores leaves everybody time to look again", "[server][fair]") {
  fair_world w;
  redisson_fair peer(common_server(), w.name, "java:1");
  peer.subscribe();
  lease held = w.fair.acquire();
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  w.enter("java:1", 400ms);
  w.enter("java:2", 200s);
  auto const brief = w.score("java:1");
  held.release();
  held = value_of(std::move(waiting));
  CHECK(w.score("java:1") == brief);
  CHECK(w.score("java:2") > w.now());
  CHECK(w.score("java:2") <= w.now() + 700);
  held.release();
  w.admin.ok("DEL", w.queue, w.scores);
}

TEST_CASE("fair lock: a waiter that another library put out of the queue stands in it again", "[server][fair]") {
  fair_world w;
  redisson_fair ahead(common_server(), w.name, "java:1", 10min);
  lease held = w.fair.acquire();
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  // Its clock is ten minutes ahead: to it everybody else is dead.
  CHECK_FALSE(ahead.acquire());
  CHECK(wait_until([&] { return w.line() == names{"java:1", w.field(me)}; }));
  ahead.give_up();
  held.release();
  value_of(std::move(waiting)).release();
}

TEST_CASE("fair lock: case 36: stale entries at the head are put out by whoever comes", "[server][fair][case-36]") {
  fair_world w;
  for (int i = 0; i < 100; ++i) w.enter("dead:" + std::to_string(i), -1s);
  CHECK(w.fair.try_lock());
  CHECK(w.line().empty());
  CHECK(w.admin.integer("EXISTS", w.scores) == 0);
  for (int i = 0; i < 10; ++i) w.enter("dead:" + std::to_string(i), -1s);
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  CHECK(wait_until([&] { return w.line() == names{w.field(me)}; }));
  w.fair.unlock();
  value_of(std::move(waiting)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: case 36: a head without a score does not stop the queue", "[server][fair][case-36]") {
  fair_world w;
  w.admin.ok("RPUSH", w.queue, "nobody:1", "nobody:2");
  stopwatch since;
  CHECK(w.fair.try_lock(patience));
  CHECK(since.passed() < 2 * soon);
  w.fair.unlock();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: case 36: a head without a score is put out while the lock is held", "[server][fair][case-36]") {
  fair_world w;
  lease held = w.fair.acquire();
  w.admin.ok("RPUSH", w.queue, "nobody:1");
  auto const who = owner::make();
  auto waiting = w.fair.async_acquire({.owner = who}, asio::use_future);
  CHECK(wait_until([&] { return w.line() == names{w.field(who)}; }));
  held.release();
  value_of(std::move(waiting)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: case 36: scores without a queue are forgotten", "[server][fair][case-36]") {
  fair_world w;
  w.admin.ok("ZADD", w.scores, w.now() + 300'000, "nobody:1");
  CHECK(w.fair.try_lock());
  w.fair.unlock();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: case 36: waiters outlive the loss of the queue, of the scores, and of both",
          "[server][fair][case-36]") {
  auto const lost = GENERATE(as<std::string>(), "queue", "scores", "both");
  fair_world w;
  lease held = w.fair.acquire();
  auto const a = owner::make(), b = owner::make();
  auto first = w.fair.async_acquire({.owner = a}, asio::use_future);
  REQUIRE(w.listening(a));
  auto second = w.fair.async_acquire({.owner = b}, asio::use_future);
  REQUIRE(w.listening(b));
  if (lost != "scores") w.admin.ok("DEL", w.queue);
  if (lost != "queue") w.admin.ok("DEL", w.scores);
  // They enter it again, each once, in whatever order they look.
  CHECK(wait_until([&] { return w.line().size() == 2 && w.score(a) > w.now() && w.score(b) > w.now(); }));
  if (lost == "scores") CHECK(w.line() == names{w.field(a), w.field(b)});
  held.release();
  bool const a_is_first = first.wait_for(patience / 2) == std::future_status::ready;
  value_of(std::move(a_is_first ? first : second)).release();
  value_of(std::move(a_is_first ? second : first)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: keys of another type are wrong_type and left alone", "[server][fair]") {
  fair_world w;
  auto const which = GENERATE(0, 1, 2);
  auto const key = which == 0 ? w.name : which == 1 ? w.queue : w.scores;
  w.admin.ok("SET", key, "text");
  if (which != 2) {
    CHECK(error_of([&] { return w.fair.try_lock(); }) == errc::wrong_type);
    CHECK(error_of([&] { return w.fair.try_lock(1s); }) == errc::wrong_type);
  } else {
    CHECK(w.fair.try_lock());
    CHECK(error_in(w.fair.async_try_lock(owner::make(), 1s, asio::use_future)) == errc::wrong_type);
    w.fair.unlock();
  }
  CHECK(w.admin.text("GET", key) == "text");
  CHECK(w.admin.integer("EXISTS", w.name, w.queue, w.scores) == 1);
  w.admin.ok("DEL", key);
  CHECK(w.fair.try_lock());
  // What became unreadable meanwhile does not keep a holder from letting go.
  w.admin.ok("SET", w.queue, "text");
  w.fair.unlock();
  CHECK(w.log.wait_for(event_type::publish_refused, w.name));
  CHECK_FALSE(w.fair.is_locked());
}

TEST_CASE("fair lock: a lock without time to live is waited for, warned about, and tried again", "[server][fair]") {
  fair_world w;
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.log.wait_for(event_type::no_time_to_live, w.name));
  REQUIRE(w.listening(me));
  w.admin.ok("DEL", w.name);
  value_of(std::move(waiting)).release();
}

TEST_CASE("fair lock: junk on its channel costs no try", "[server][fair]") {
  fair_world w;
  redisson_fair peer(common_server(), w.name, "java:1");
  REQUIRE(peer.acquire());
  auto const me = owner::make();
  auto waiting = w.fair.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(me));
  for (auto const* junk : {"", "1", "-1", "00", "zero"}) w.admin.ok("PUBLISH", w.channel + ":" + w.field(me), junk);
  REQUIRE(wait_until([&] { return w.own.snapshot().messages == 5; }));
  CHECK(w.own.snapshot().held == 0);
  CHECK(peer.unlock() == 1);
  value_of(std::move(waiting)).release();
}

TEST_CASE("fair lock: where memory is short nobody enters and nothing is left half written", "[server][fair]") {
  private_world w;
  auto const fair = w.own.get_fair_lock(w.name);
  lease held = fair.acquire();
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const error = error_in(fair.async_try_lock(owner::make(), 100ms, asio::use_future));
  CHECK((error == errc::server_error || error == errc::timeout || !error));
  CHECK(w.admin.integer("EXISTS", "redisson_lock_queue:{lock}", "redisson_lock_timeout:{lock}") == 0);
  CHECK(held.release() == release_result::released);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(error_of([&] { return fair.try_lock(); }) != error_code{});
  CHECK(w.admin.integer("DBSIZE") == 0);
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  CHECK(fair.try_lock());
  fair.unlock();
}

}  // namespace kind_fair_line
