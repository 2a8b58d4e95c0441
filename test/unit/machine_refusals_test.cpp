#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <wire/reentrant_scripts.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("a server that runs a slow script is asked again, and a one-shot only so often") {
  constexpr auto busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("EVALSHA", busy, -1);
  task& b = w.once(2, {.name = "other"});
  w.await(b);
  CHECK(b.error == errc::server_error);
  CHECK(b.text == busy);
  task& ended = w.release(a);
  task& c = w.acquire(3);
  w.run();
  CHECK_FALSE(ended.done());
  w.server.accept_all();
  w.await(ended);
  w.await(c);
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("one refused item does not touch the others of its call") {
  world w;
  w.server.ask({"RPUSH", "wrong", "something"});
  task& a = w.acquire(1, {.name = "first"});
  task& b = w.acquire(1, {.name = "wrong"});
  task& c = w.acquire(1, {.name = "last"});
  w.run();
  CHECK(a.granted());
  CHECK(b.error == errc::wrong_type);
  CHECK(c.granted());
  CHECK(w.server.ran("EVALSHA acquire") == 1);
  w.finish();
}

TEST_CASE("out of memory: a one-shot is told, a waiter goes on, a release works") {
  world w;
  task& held = granted(w, w.acquire(9, {.name = "held"}));
  w.server.redis.full = true;
  task& a = w.once(1);
  task& b = w.acquire(2, {.name = "other"});
  w.await(a);
  CHECK(a.error == errc::server_error);
  CHECK(a.text.starts_with("OOM"));
  task& ended = w.release(held);
  w.await(ended);
  CHECK(ended.released == release_result::released);
  w.pass(3s);
  CHECK_FALSE(b.done());
  w.server.redis.full = false;
  w.await(b);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("no permission to run scripts ends a call at once") {
  world w;
  w.server.refuse("EVALSHA", "NOPERM this user has no permissions to run the 'evalsha' command", -1);
  task& a = w.acquire(1);
  w.run();
  CHECK(a.done());
  CHECK_FALSE(a.granted());
  CHECK(a.text.starts_with("NOPERM"));
  CHECK(w.now == a.started);
  w.finish();
}

TEST_CASE("READONLY in mid-session: the connection is given up, and the request goes to the next server") {
  world w;
  granted(w, w.acquire(9, {.name = "other"}));
  w.server.refuse("EVALSHA acquire", "READONLY You can't write against a read only replica.", 1);
  task& a = w.acquire(1);
  w.await(a);
  CHECK(a.granted());
  CHECK(w.snapshot().reconnects == 1);
  w.finish();
}

TEST_CASE("refused SUBSCRIBE: one event, and waiters poll") {
  world w;
  w.server.refuse("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels used as arguments",
                  -1);
  for (char const* key : {"k", "other"}) w.server.stranger_takes(key, "stranger:1", 600'000);
  task& a = w.acquire(1);
  task& b = w.acquire(2, {.name = "other"});
  w.pass(10s);
  CHECK(w.noted(event_type::subscribe_refused) == 1);
  CHECK(w.snapshot().messages_refused);
  std::size_t const tries = w.server.ran("EVALSHA acquire");
  CHECK(tries > 10);
  CHECK(tries < 60);
  for (char const* key : {"k", "other"}) w.server.remove(key);
  w.pass(1'002ms);
  CHECK(a.granted());
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("refused PUBLISH: an event, released all the same, and who waits here is told") {
  config settings;
  settings.local_handoff.max_streak = 0;
  world w(settings);
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  w.run();
  w.server.redis.refuses_publish = true;
  task& ended = w.release(a);
  w.run();
  CHECK(ended.released == release_result::released);
  CHECK(w.noted(event_type::publish_refused) == 1);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("answers of unexpected form are errors, and what they may have done is given back") {
  for (std::string const answer : {"{}", "1", "{-3, -3}", "{-99}", "{false}", "redis.status_reply('OK')", "'x'"}) {
    world w;
    w.server.answer_with(detail::reentrant_acquire(), "redis.call('hset', KEYS[1], ARGV[1], '1') return " + answer);
    task& a = w.acquire(1);
    w.run();
    CHECK(a.error);
    CHECK_FALSE(a.granted());
    CHECK(w.server.all().empty());
    w.finish();
  }
}

TEST_CASE("bytes that are no RESP end the connection, and the request goes again") {
  for (role const lane : {role::shared, role::direct}) {
    world w;
    warm_up(w, true);
    w.deafen(lane);
    task& a = w.acquire(1, {.direct = lane == role::direct});
    w.run();
    if (lane == role::shared) {
      w.inject(lane, "?what\r\n");
    } else {
      detail::actions out;
      w.lose(lane, fate::gone);
    }
    w.await(a);
    CHECK(a.granted());
    CHECK(w.server.ran("CLIENT KILL ID") == 1);
    w.finish();
  }
}

TEST_CASE("a lock without a time to live is looked at every second, and an event says so") {
  world w;
  w.server.set("k", "stranger:1", 1);
  task& a = w.acquire(1);
  w.run();
  CHECK(w.noted(event_type::no_time_to_live) >= 1);
  std::size_t const before = w.server.ran("EVALSHA acquire");
  w.pass(5s);
  CHECK(w.server.ran("EVALSHA acquire") >= before + 4);
  CHECK(w.server.ran("EVALSHA acquire") <= before + 5);
  w.server.remove("k");
  w.pass(1'002ms);
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("a repeated acquire that is refused is given back: the copy before it may have been granted") {
  world w;
  w.release(granted(w, w.acquire(9, {.name = "warm"})));
  w.run();
  task* a = nullptr;
  leave_unanswered(w, role::shared, [&] { a = &w.once(1); });
  CHECK(w.server.all() == std::set<std::string>{"k/clientA:1=1"});
  w.server.refuse("EVALSHA acquire k", "NOPERM this user has no permissions to run the 'evalsha' command");
  w.run();
  w.await(*a);
  w.run();
  CHECK((a->done() && !a->granted()));
  CHECK(w.server.all().empty());
  w.finish();
}
