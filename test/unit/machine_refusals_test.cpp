#include <machine/orphans.hpp>
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <wire/scripts.hpp>

#include <algorithm>

namespace machine_refusals {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;
using namespace latchkey::detail;

TEST_CASE("a server that runs a slow script is asked again, and a one-shot only so often") {
  constexpr auto busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("EVALSHA", busy, -1);
  task& b = w.await(w.once(2, {.name = "other"}));
  CHECK(b.error == errc::server_error);
  CHECK(b.text == busy);
  task& ended = w.release(a);
  task& c = w.run(w.acquire(3));
  CHECK_FALSE(ended.done());
  w.server.accept_all();
  w.await(ended, c);
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("one refused item does not touch the others of its call") {
  world w;
  w.server.ask({"RPUSH", "wrong", "something"});
  task& a = w.acquire(1, {.name = "first"});
  task& b = w.acquire(1, {.name = "wrong"});
  task& c = w.run(w.acquire(1, {.name = "last"}));
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
  CHECK(w.await(w.release(held)).released == release_result::released);
  w.pass(3s);
  CHECK_FALSE(b.done());
  w.server.redis.full = false;
  granted(w, b);
  w.finish();
}

TEST_CASE("no permission to run scripts ends a call at once") {
  world w;
  w.server.refuse("EVALSHA", "NOPERM this user has no permissions to run the 'evalsha' command", -1);
  task& a = w.run(w.acquire(1));
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
  granted(w, w.acquire(1));
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

TEST_CASE("refused SUBSCRIBE: asked for again with every look, and whoever may listen is told by messages") {
  for (bool const fair : {false, true}) {
    world w(seen_by_the_server(), 2);
    auto const how_of = [&](std::size_t client) {
      return how{.client = client, .which = fair ? &detail::fair_kind() : &detail::reentrant_kind()};
    };
    task& held = granted(w, w.acquire(1, how_of(0)));
    w.server.refuse("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels", 5);
    task& waits = w.acquire(1, how_of(1));
    w.pass(10s);
    CHECK(w.noted(event_type::subscribe_refused) == 1);
    CHECK_FALSE(w.snapshot(1).messages_refused);
    w.release(held);
    w.pass(1ms);
    CHECK(waits.granted());
    w.finish();
  }
}

TEST_CASE("refused PUBLISH: an event, released all the same, and who waits here is told") {
  world w({.local_handoff = {.max_streak = 0}});
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.server.redis.refuses_publish = true;
  CHECK(w.run(w.release(a)).released == release_result::released);
  CHECK(w.noted(event_type::publish_refused) == 1);
  CHECK(b.granted());
  w.finish();
}

// What the one may not say the other, of the same user, may not say either.
TEST_CASE("refused PUBLISH: who was refused once expects no message and polls") {
  for (bool const fair : {false, true}) {
    world w(seen_by_the_server(), 2);
    auto const how_of = [&](std::size_t client) {
      return how{.client = client, .which = fair ? &detail::fair_kind() : &detail::reentrant_kind()};
    };
    w.server.redis.refuses_publish = true;
    w.run(w.release(granted(w, w.acquire(1, {.name = "other", .client = 1}))));
    task& a = granted(w, w.acquire(1, how_of(0)));
    task& b = w.acquire(1, how_of(1));
    w.pass(5s);
    w.release(a);
    w.pass(1'100ms);
    CHECK(b.granted());
    w.server.redis.refuses_publish = false;
    w.run(w.release(b));
    CHECK(w.noted(event_type::publish_refused) == 2);
    w.finish();
  }
}

TEST_CASE("answers of unexpected form are errors, and what they may have done is given back") {
  for (std::string const answer : {"{}", "1", "{-3, -3}", "{-99}", "{false}", "redis.status_reply('OK')", "'x'"}) {
    world w;
    w.server.answer_with(detail::reentrant_acquire(), "redis.call('hset', KEYS[1], ARGV[1], '1') return " + answer);
    task& a = w.run(w.acquire(1));
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
    task& a = w.run(w.acquire(1, {.direct = lane == role::direct}));
    if (lane == role::shared) {
      w.inject(lane, "?what\r\n");
    } else {
      detail::actions out;
      w.lose(lane, fate::gone);
    }
    granted(w, a);
    CHECK(w.server.ran("CLIENT KILL ID") == 1);
    w.finish();
  }
}

TEST_CASE("a lock without a time to live is looked at every second, and an event says so") {
  world w;
  w.server.set("k", "stranger:1", 1);
  task& a = w.run(w.acquire(1));
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
  w.run(w.release(granted(w, w.acquire(9, {.name = "warm"}))));
  task& a = *leave_unanswered(w, role::shared, [&] { return &w.once(1); });
  CHECK(w.server.all() == std::set<std::string>{"k/clientA:1=1"});
  w.server.refuse("EVALSHA acquire k", "NOPERM this user has no permissions to run the 'evalsha' command");
  w.run();
  w.await(a);
  w.run();
  CHECK((a.done() && !a.granted()));
  CHECK(w.server.all().empty());
  w.finish();
}

// What connections leave behind, without the session: docs/safety.md, section 5.

namespace {

constexpr instant start{std::chrono::hours(1)};

config observed() {
  config settings = seen_by_the_server();
  settings.on_event = [](event const&) {};
  settings.retry_attempts = 2;
  settings.retry_delay = 1s;
  return settings;
}

struct room final : orphans_user, plain_listener {
  room() {
    shared.out = &out;
    shared.now = start;
  }
  void kill(orphan const& gone) override { said += "kill " + gone.id + " "; }
  outbox& requests_of(operation const&) const override { throw std::logic_error("it has none"); }
  void sends(operation const&) override { FAIL(); }
  std::uint64_t shown_as(operation const& call) const override { return call.owner; }
  void answered(sent_call const&, reply const&, outbox const&) override { FAIL(); }
  void not_run(operation&, server_error const&, std::string_view) override { FAIL(); }
  void again(operation&) override { FAIL(); }
  void unanswered(operation& call) override { said += "unanswered " + std::to_string(call.owner) + " "; }
  void expire(operation& call, error_code const& why) override {
    CHECK(why == errc::connection_lost);
    said += "ends " + std::to_string(call.owner) + " ";
    all.forget(call);
  }
  std::string heard() { return std::exchange(said, {}); }

  // With a force-unlock of this owner, if not zero.
  void lose(std::uint32_t serial, std::uint64_t owner = 0, std::string address = "1.2.3.4:5") {
    remains left{std::to_string(serial * 10), std::move(address), run_id, serial, {}};
    auto& sent = left.calls.emplace_back();
    sent.what = sent_call::type::script;
    if (owner != 0) {
      sent = {.what = sent_call::type::plain, .asked = ask::force_unlock, .plain = &plain(owner)};
      sent.plain->what = operation::type::force_unlock;
    }
    all.give_up(std::move(left), errc::connection_lost, {});
  }
  operation& plain(std::uint64_t owner) {
    calls.emplace_back().owner = owner;
    return calls.back();
  }
  void answer(std::uint32_t serial, std::int64_t number) {
    reply made;
    made.kind = reply::type::integer;
    made.integer = number;
    all.answered(serial, made);
  }
  void refuse(std::uint32_t serial, std::string text) {
    reply made;
    made.kind = reply::type::error;
    made.text = std::move(text);
    all.answered(serial, made);
  }

  context shared{observed()};
  actions out;
  std::string said;
  std::deque<operation> calls;
  std::string run_id;
  timer_node timer;
  orphans all{shared, *this, *this, timer};
};

}  // namespace

TEST_CASE("orphans: each is killed once, and its force-unlocks end with the answer") {
  room r;
  r.lose(1, 7);
  CHECK(r.out.turn);
  r.lose(2);
  r.all.send();
  CHECK(r.heard() == "kill 10 kill 20 ");
  r.all.send();
  CHECK(r.heard().empty());
  r.answer(2, 0);  // it was gone already
  CHECK(r.heard().empty());
  CHECK_FALSE(r.all.empty());
  CHECK(r.all.forced().size() == 1);
  r.answer(1, 1);
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
  CHECK(r.shared.counters.kills == 2);
  r.answer(1, 1);  // nobody asked
  CHECK(r.heard().empty());
}

TEST_CASE("orphans: a KILL whose connection was lost is asked again") {
  room r;
  r.lose(1, 7);
  r.all.send();
  r.all.disconnected();
  r.all.connected("99", {});
  CHECK(r.heard() == "kill 10 ");
  r.all.send();
  CHECK(r.heard() == "kill 10 ");
}

TEST_CASE("orphans: what is no number is no answer, costs a pause and an attempt") {
  room r;
  r.lose(1, 7);
  r.all.send();
  CHECK(r.heard() == "kill 10 ");
  for (int attempt = 0; attempt < 2; ++attempt) {
    r.refuse(1, "BUSY Redis is busy running a script");
    r.all.send();
    CHECK(r.heard().empty());  // not before the pause is over
    r.shared.now += 1s;
    r.all.send();
    CHECK(r.heard() == "kill 10 ");
  }
  r.refuse(1, "BUSY Redis is busy running a script");
  CHECK(r.heard() == "ends 7 ");
  CHECK_FALSE(r.all.empty());
  r.shared.timers.drop(r.timer);
}

TEST_CASE("orphans: where the server refuses KILL nothing is waited for, and one event says so") {
  room r;
  r.lose(1, 7);
  r.all.send();
  r.refuse(1, "NOPERM this user has no permissions to run the 'client|kill' command");
  CHECK_FALSE(r.shared.counters.fenced);
  CHECK(r.heard() == "kill 10 ");
  r.all.send();
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
  r.lose(2, 8);
  CHECK(r.heard() == "ends 8 ");
  r.all.refuse("NOPERM once more");
  CHECK(std::count_if(r.out.notes.begin(), r.out.notes.end(),
                      [](note const& one) { return one.type == event_type::kill_refused; }) == 1);
  r.all.allow();
  CHECK(r.shared.counters.fenced);
  r.lose(3, 9);
  r.all.send();
  CHECK(r.heard() == "kill 30 ");
}

TEST_CASE("orphans: another process of the server has outlived them") {
  room r;
  r.run_id = "a";
  r.lose(1, 7);
  r.all.connected("3", "b");
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
}

TEST_CASE("orphans: on a Unix socket numbers that start anew tell of another process, elsewhere they do not") {
  // As Redis and as Valkey show it.
  std::string const address = GENERATE("/tmp/redis.sock:0", "[/tmp/redis.sock:0]:0");
  room r;
  r.lose(5, 7, address);
  r.lose(6, 8, "[::1]:5");
  r.all.connected("51", {});
  CHECK(r.heard().empty());
  r.all.connected("50", {});
  CHECK(r.heard() == "ends 7 ");
  CHECK_FALSE(r.all.empty());
}

TEST_CASE("orphans: only what may still run makes one; what asked for nothing is told, and that is all") {
  room r;
  sent_call hello{.what = sent_call::type::hello};
  sent_call asked{.what = sent_call::type::plain, .plain = &r.plain(7)};
  sent_call left_alone{.what = sent_call::type::plain};
  remains left{"10", "1.2.3.4:5", {}, 1, {}};
  for (auto* one : {&hello, &asked, &left_alone}) left.calls.push_back(*one);
  left.calls[1].plain->what = operation::type::query;
  r.all.give_up(std::move(left), errc::connection_lost, {});
  CHECK(r.heard() == "unanswered 7 ");
  CHECK(r.all.empty());
  r.all.give_up({"20", "1.2.3.4:6", {}, 2, {{.what = sent_call::type::renewals}}}, errc::connection_lost, {});
  r.all.send();
  CHECK(r.heard() == "kill 20 ");
}

}  // namespace machine_refusals
