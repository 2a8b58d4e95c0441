// What a server says that is sick for long, and what its clients say of it.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <wire/scripts.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr auto is_loading = "LOADING Redis is loading the dataset in memory";
constexpr auto is_read_only = "READONLY You can't write against a read only replica.";
constexpr auto is_full = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr auto not_permitted = "NOPERM this user has no permissions to run this command";

std::vector<std::string> texts_of(world const& w, event_type what) {
  std::vector<std::string> made;
  for (auto const& one : w.notes)
    if (one.type == what) made.push_back(one.text);
  return made;
}

// Every acquire is refused inside the script, as where memory is short.
void refuse_acquires(world& w, std::string const& words) {
  w.server.answer_with(detail::reentrant_acquire(),
                       "local made = {} for i = 1, #KEYS do made[i] = \"" + words + "\" end return made");
}

}  // namespace

TEST_CASE("sick answers: a release that is refused goes on no longer than the server can remember the hold") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1, {.lease = 20s}));
  w.server.refuse("EVALSHA release", is_read_only, -1);
  w.drop(a);
  w.pass(10s);
  CHECK(w.snapshot().in_doubt + w.server.ran("EVALSHA release") > 5);
  CHECK_FALSE(w.at_ease());
  w.pass(15s);
  std::size_t const tries = w.server.ran("EVALSHA release");
  CHECK(w.at_ease());
  w.pass(60s);
  CHECK(w.server.ran("EVALSHA release") == tries);
  CHECK(texts_of(w, event_type::warning).back() == is_read_only);
  w.server.accept_all();
  w.finish();
}

TEST_CASE("sick answers: nor does one of a watchdog hold, which counts from its last renewal") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.pass(100s);
  w.server.refuse("EVALSHA release", is_loading, -1);
  w.drop(a);
  w.pass(15s);
  CHECK_FALSE(w.at_ease());
  w.pass(20s);
  CHECK(w.at_ease());
  w.server.accept_all();
  w.finish();
}

TEST_CASE("sick answers: a release that a right forbids goes once") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 20s}));
  w.server.refuse("EVALSHA release", not_permitted, -1);
  w.drop(a);
  w.pass(60s);
  CHECK(w.server.ran("EVALSHA release") == 1);
  w.server.accept_all();
  w.finish();
}

TEST_CASE("sick answers: LOADING is one event as long as it lasts, and the words of whoever waited in vain") {
  world w;
  granted(w, w.acquire(9, {.name = "warm"}));
  w.server.refuse("EVALSHA", is_loading, -1);
  task& a = w.acquire(1, {.wait = 5s});
  task& b = w.acquire(2, {.wait = 5s});
  task& c = w.acquire(3, {.name = "other", .wait = 5s});
  w.pass(6s);
  CHECK(texts_of(w, event_type::warning) == std::vector<std::string>{is_loading});
  for (task* one : {&a, &b, &c}) {
    w.await(*one);
    CHECK(one->error == errc::timeout);
    CHECK(one->text == is_loading);
  }
  w.server.accept_all();
  w.pass(5s);
  granted(w, w.acquire(4, {.name = "third"}));
  w.server.refuse("EVALSHA", is_loading, 2);
  granted(w, w.acquire(5, {.name = "fourth"}));
  CHECK(texts_of(w, event_type::warning) == std::vector<std::string>{is_loading, is_loading});
  w.finish();
}

TEST_CASE("sick answers: OOM is one event as long as it lasts, though renewals pass") {
  world w;
  task& held = granted(w, w.acquire(9, {.name = "warm"}));
  refuse_acquires(w, is_full);
  task& a = w.acquire(1, {.wait = 25s});
  task& b = w.acquire(2, {.name = "other", .wait = 25s});
  w.pass(26s);
  CHECK(w.snapshot().renewals >= 2);
  CHECK(texts_of(w, event_type::warning) == std::vector<std::string>{is_full});
  CHECK(a.text == is_full);
  CHECK(b.text == is_full);
  w.server.answer_with(detail::reentrant_acquire(), {});
  w.await(w.release(held));
  w.finish();
}

TEST_CASE("sick answers: READONLY is one event, not one for each request and connection") {
  world w;
  granted(w, w.acquire(9, {.name = "warm"}));
  w.server.refuse("ROLE", not_permitted, -1);  // else the handshake tells
  w.server.refuse("EVALSHA", is_read_only, -1);
  task& a = w.await(w.acquire(1, {.wait = 5s}));
  CHECK(texts_of(w, event_type::warning) == std::vector<std::string>{is_read_only});
  CHECK(a.text == is_read_only);
  w.server.accept_all();
  w.finish();
}

TEST_CASE("sick answers: protected mode is said in its own words, and ends every call") {
  world w;
  std::string const words = "DENIED Redis is running in protected mode because protected mode is enabled";
  w.server.noise = "-" + words + "\r\n";
  task& a = w.run(w.acquire(1));
  CHECK(a.error == errc::server_error);
  CHECK(a.text == words);
  CHECK(texts_of(w, event_type::connect_failed) == std::vector<std::string>{words});
  w.server.noise.clear();
  w.finish();
}

TEST_CASE("sick answers: at risk, since a renewal was not answered") {
  world w({.ping_interval = 0ms});
  granted(w, w.acquire(1));
  w.mute(role::shared);
  w.pass(14s);
  auto const risk =
      std::find_if(w.notes.begin(), w.notes.end(), [](auto const& one) { return one.type == event_type::at_risk; });
  REQUIRE(risk != w.notes.end());
  CHECK(risk->error == errc::timeout);
  CHECK(risk->text == "a renewal was not answered");
  w.finish();
}

TEST_CASE("sick answers: a channel that is refused makes its own waiters poll, and nobody else") {
  world w;
  std::string const forbidden = detail::reentrant_kind().channel("forbidden", {});
  w.server.refuse("SUBSCRIBE " + forbidden, "NOPERM no permissions to access one of the channels", -1);
  for (char const* key : {"forbidden", "k"}) w.server.stranger_takes(key, stranger, 600'000);
  task& a = w.acquire(1, {.name = "forbidden"});
  task& b = w.acquire(2);
  w.pass(10s);
  CHECK(w.noted(event_type::subscribe_refused) == 1);
  CHECK(w.server.ran("EVALSHA acquire forbidden") > 5);
  CHECK(w.server.ran("EVALSHA acquire k ") <= 3);
  w.server.remove("forbidden");
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(b.granted());
  w.pass(1'100ms);
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("secrets: whatever a server repeats, the password is in no event and no error") {
  config settings = seen_by_the_server();
  settings.username = "alice";
  settings.password = "open sesame";
  for (char const* words : {"ERR I will not hear of alice:open sesame", "WRONGPASS (open sesameopen sesame)"}) {
    for (char const* to : {"AUTH", "SELECT", "CLIENT PROBE", "CLIENT INFO", "EVALSHA", "EXISTS"}) {
      settings.database = 1;
      world w(settings);
      w.server.redis.user = "alice";
      w.server.redis.password = "open sesame";
      w.server.refuse(to, words, -1);
      w.acquire(1, {.wait = 1s});
      w.ask(detail::query::is_locked);
      w.pass(2s);
      std::string all;
      for (auto const& one : w.notes) all += one.text + "\n";
      for (auto const& one : w.tasks()) all += one->text + "\n";
      CHECK(all.find("sesame") == std::string::npos);
      CHECK(all.find("***") != std::string::npos);
      w.server.accept_all();
    }
  }
}

TEST_CASE("secrets: a short password is hidden between quotes, and not told by a gap in a sentence") {
  config settings = seen_by_the_server();
  settings.username = "alice";
  settings.password = "user";
  world w(settings);
  w.server.redis.user = "alice";
  w.server.redis.password = "user";
  w.server.refuse("EVALSHA", "ERR this user has no permissions to send 'user', `user` or \"user\"", -1);
  task& a = w.acquire(1, {.wait = 0ms});
  w.pass(2s);
  CHECK(a.text == "ERR this user has no permissions to send '***', `***` or \"***\"");
}

TEST_CASE("fences: on a Unix socket nobody is killed whom a server's restart has given the old number") {
  world w;
  w.server.redis.on_unix_socket = true;
  task& a = granted(w, w.acquire(1));
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(a); });
  w.server.log.clear();
  w.server.restart(true);
  auto const other = w.server.accept();  // a stranger, with the number that was ours
  w.await(ended);
  CHECK(w.server.ran("CLIENT KILL") == 0);
  CHECK(w.server.alive(other));
  CHECK(ended.released == release_result::released);
  w.finish();
}

TEST_CASE("fences: on a Unix socket the same process is told to kill") {
  world w;
  w.server.redis.on_unix_socket = true;
  task& a = granted(w, w.acquire(1));
  task& ended = *leave_unread(w, role::shared, [&] { return &w.release(a); });
  w.await(ended);
  CHECK(w.server.ran("CLIENT KILL ID") == 1);
  w.finish();
}

TEST_CASE("fences: a process that does not say which it is, on a Unix socket: numbers that start anew tell") {
  world w;
  w.server.redis.on_unix_socket = true;
  w.server.redis.run_id.clear();
  task& a = granted(w, w.acquire(1));
  CHECK(w.noted(event_type::warning) == 1);
  CHECK(w.snapshot().fenced);
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(a); });
  w.server.restart(true);
  w.await(ended);
  CHECK(w.server.ran("CLIENT KILL ID") == 0);
  CHECK(w.noted(event_type::warning) == 1);
  w.finish();
}
