#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config with_password(std::string password, std::string user = {}) {
  return {.username = std::move(user), .password = std::move(password)};
}

constexpr auto no_permission = "NOPERM this user has no permissions to run this command";

}  // namespace

TEST_CASE("handshake: the words that it says, in order, before any request") {
  config settings = with_password("secret", "alice");
  settings.database = 3;
  settings.client_name = "shop";
  world w(settings);
  w.server.redis.password = "secret";
  w.server.redis.user = "alice";
  granted(w, w.acquire(1));
  std::vector<std::string> const first(w.server.log.begin(), w.server.log.begin() + 9);
  CHECK(first == std::vector<std::string>{"AUTH alice secret", "SELECT 3", "CLIENT SETNAME shop", "ROLE", "INFO server",
                                          "CLIENT PROBE ID 9223372036854775807", "SCRIPT EXISTS acquire release",
                                          "CLIENT INFO", "EVALSHA acquire k clientA:1 1 30000"});
  w.finish();
}

TEST_CASE("handshake: a wrong password ends every call at once, and nobody tries again") {
  for (auto const& settings : {with_password("wrong"), with_password("wrong", "alice"), with_password("")}) {
    world w(settings);
    w.server.redis.password = "secret";
    task& a = w.acquire(1);
    task& b = w.once(2);
    task& c = w.run(w.ask(detail::query::is_locked));
    for (task* one : {&a, &b, &c}) {
      CHECK(one->error == errc::auth_failed);
      CHECK_FALSE(one->text.empty());
      CHECK(one->text.find("wrong") == std::string::npos);
    }
    CHECK(w.opened == 1);
    w.pass(60s);
    CHECK(w.opened == 1);
    w.finish();
  }
}

// A hold is to be renewed: it is tried again and again, and calls come in the pauses.
TEST_CASE("handshake: in a pause after a refusal calls end with that, and without a pause if asked") {
  world w(with_password("secret"));
  w.server.redis.password = "secret";
  task& held = granted(w, w.acquire(1));
  w.server.redis.password = "another";
  w.lose(role::shared, fate::gone);
  w.pass(12s);
  REQUIRE(w.noted(event_type::connect_failed) > 2);
  for (int i = 0; i < 20; ++i) {
    task& tried = w.await(w.acquire(2, {.name = "other", .wait = 20ms}));
    task& connected = w.await(w.connect(20ms));
    for (task const* one : {&tried, &connected}) {
      CHECK(one->error == errc::auth_failed);
      CHECK(one->text.find("WRONGPASS") != std::string::npos);
    }
    w.pass(37ms);
  }
  w.server.redis.password = "secret";
  w.tell("hurry", [](auto& machine, auto now, auto& out) { machine.hurry(now, out); });
  CHECK_FALSE(w.await(w.connect(1ms)).error);
  CHECK(held.losses == 0);
  w.await(w.release(held));
  w.finish();
}

TEST_CASE("handshake: a database that is not there") {
  world w({.database = 99});
  w.server.refuse("SELECT", "ERR DB index is out of range", -1);
  task& a = w.run(w.acquire(1));
  CHECK(a.error == errc::auth_failed);
  CHECK(a.text == "ERR DB index is out of range");
  w.finish();
}

TEST_CASE("handshake: where KILL may not be used, an event says so and the rest works") {
  world w;
  w.server.refuse("CLIENT PROBE", no_permission, -1);
  task& a = granted(w, w.acquire(1, {.direct = true}));
  CHECK(w.noted(event_type::kill_refused) == 1);
  CHECK_FALSE(w.snapshot().fenced);
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(a); });
  w.await(ended);
  CHECK(ended.released == release_result::released);
  CHECK(w.server.ran("CLIENT KILL") == 0);
  CHECK(w.noted(event_type::kill_refused) == 1);
  w.finish();
}

TEST_CASE("handshake: where CLIENT INFO may not be used, there is no fence and no direct lane, and the rest works") {
  world w;
  w.server.refuse("CLIENT INFO", no_permission, -1);
  task& a = granted(w, w.acquire(1, {.direct = true}));
  w.run();
  CHECK_FALSE(w.connected(role::direct));
  CHECK(w.noted(event_type::kill_refused) == 1);
  task& b = w.run(w.acquire(2, {.direct = true}));
  CHECK(w.server.subscriptions() == 1);
  w.run(w.release(a, true));
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("handshake: where CLIENT LIST may not be used, there is no direct lane, and messages arrive") {
  world w;
  w.server.refuse("CLIENT LIST", no_permission, -1);
  w.server.stranger_takes("k", "stranger:1", 60'000);
  task& a = w.run(w.acquire(1, {.direct = true}));
  CHECK_FALSE(w.connected(role::direct));
  CHECK(w.noted(event_type::lane_unchecked) == 1);
  w.server.stranger_releases("k", "stranger:1");
  w.run();
  CHECK(a.granted());
  int const opened = w.opened;
  w.await(w.release(a, true));
  w.run();
  CHECK(w.opened == opened);
  w.finish();
}

TEST_CASE("handshake: ROLE and SETNAME are not needed") {
  world w({.client_name = "shop"});
  w.server.refuse("ROLE", no_permission, -1);
  w.server.refuse("CLIENT SETNAME", no_permission, -1);
  granted(w, w.acquire(1));
  CHECK(w.snapshot().fenced);
  w.finish();
}

TEST_CASE("handshake: a script that the server does not have goes whole at its first use, without being refused") {
  world w;
  w.server.flush_scripts();
  task& a = granted(w, w.acquire(1));
  w.await(w.release(a));
  CHECK(w.server.ran("EVAL acquire") == 1);
  CHECK(w.server.ran("EVAL release") == 1);
  CHECK(w.server.ran("EVALSHA") == 0);
  w.await(w.release(granted(w, w.acquire(1))));
  CHECK(w.server.ran("EVALSHA") == 2);
  w.finish();
}

TEST_CASE("handshake: a server that does not say which scripts it has is asked by EVALSHA") {
  for (std::string_view refusal : {std::string_view(no_permission), std::string_view("BUSY Redis is busy")}) {
    world w;
    w.server.refuse("SCRIPT EXISTS", std::string(refusal), -1);
    w.server.flush_scripts();
    task& a = granted(w, w.acquire(1));
    CHECK(w.server.ran("EVALSHA acquire") == 1);
    CHECK(w.server.ran("EVAL acquire") == 1);
    w.await(w.release(a));
    w.finish();
  }
}

TEST_CASE("handshake: a replica is left again; a one-shot is told so, a waiter waits for a primary") {
  world w;
  w.server.redis.read_only = true;
  task& a = w.once(1);
  task& b = w.acquire(2);
  w.await(a);
  CHECK(a.error == errc::read_only);
  CHECK_FALSE(b.done());
  CHECK(w.server.ran("EVAL") == 0);
  w.server.redis.read_only = false;
  granted(w, b);
  w.finish();
}

TEST_CASE("handshake: a peer that speaks something else") {
  world w;
  w.server.noise = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  task& a = w.await(w.acquire(1));
  CHECK(a.error == errc::protocol_error);
  w.finish();
}

TEST_CASE("handshake: a server that has no room says so, and has room later") {
  world w;
  w.server.noise = "-ERR max number of clients reached\r\n";
  task& a = w.once(1);
  task& b = w.acquire(2);
  w.await(a);
  CHECK(a.error);
  CHECK(a.text == "ERR max number of clients reached");
  CHECK_FALSE(b.done());
  w.server.noise.clear();
  granted(w, b);
  w.finish();
}

TEST_CASE("handshake: a server that is loading is asked again") {
  world w;
  w.server.refuse("ROLE", "LOADING Redis is loading the dataset in memory", 3);
  task& a = w.await(w.once(1));
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("handshake: a connection that is never made is given up in time") {
  config settings = seen_by_the_server();
  settings.connect_timeout = 2s;
  world w(settings);
  w.nobody_answers = true;
  task& a = w.await(w.once(1));
  CHECK(a.error == errc::connect_failed);
  CHECK(w.opened == settings.retry_attempts + 1);
  w.finish();
}

TEST_CASE("reconnecting: the first time at once, then with growing pauses, then as before") {
  world w;
  granted(w, w.acquire(1));
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone);
  int const before = w.opened;
  w.run();
  CHECK(w.opened == before + 1);
  w.pass(1s);
  int const second = w.opened;
  CHECK(second > before + 3);
  w.pass(20s);
  CHECK(w.opened - second <= 45);  // a pause is between half a second and one
  CHECK(w.opened - second >= 18);
  w.unreachable.clear();
  w.pass(1s);
  CHECK(w.connected(role::shared));
  int const third = w.opened;
  w.lose(role::shared, fate::gone).run();
  CHECK(w.opened > third);
  w.finish();
}

TEST_CASE("a client that needs nothing does not connect") {
  world w;
  granted(w, w.acquire(1));
  w.resolve();
  w.lose(role::shared, fate::gone);
  w.unreachable = "no route";
  int const before = w.opened;
  w.pass(60s);
  CHECK(w.opened == before);
  w.unreachable.clear();
  granted(w, w.acquire(1));
  w.finish();
}

TEST_CASE("an idle link is asked now and then, and replaced when it does not answer") {
  world w;
  granted(w, w.acquire(1, {.lease = 300s}));
  std::size_t const before = w.server.ran("PING");
  w.pass(91s);
  CHECK(w.server.ran("PING") == before + 3);
  w.lose(role::shared, fate::silent);
  w.pass(34s);
  CHECK(w.snapshot().reconnects == 1);
  CHECK(w.connected(role::shared));
  w.finish();
}

TEST_CASE("session: a client that was stopped reads what has arrived before it judges a connection") {
  for (bool const answers : {true, false}) {
    world w;
    granted(w, w.acquire(1, {.lease = 60s}));
    auto const before = w.serial(role::shared);
    w.mute(role::shared);
    task& asked = w.run(w.ask(detail::query::is_locked, 1));
    w.now += 20s;  // nothing of the process ran meanwhile
    REQUIRE(w.wait_for_next());
    CHECK(w.serial(role::shared) == before);
    CHECK_FALSE(asked.done());
    if (answers) w.mute(role::shared, false);
    w.run();
    w.pass(100ms);
    CHECK((w.connected(role::shared) && w.serial(role::shared) == before) == answers);
    w.mute(role::shared, false);
    w.finish();
  }
}
