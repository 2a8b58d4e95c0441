// Cases 37 to 45: the server is in a state in which it refuses. Real states of a real server.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>
#include <wire/scripts.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// A call without a wait is repeated this often at most, and quickly.
config few_retries() {
  auto settings = steady_config();
  settings.retry_attempts = 1;
  settings.retry_delay = 20ms;
  return settings;
}

// What a lock() does that started while the server refused: it goes on until the server is well again.
template <class Heal>
void check_waits_until(private_world& w, Heal heal) {
  auto const before = w.own.snapshot().commands;
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.lock.lock(); }); });
  // Refused at least once, and it has tried again.
  REQUIRE(wait_until([&] { return w.own.snapshot().commands >= before + 3; }));
  heal();
  CHECK(value_of(std::move(waiter)) == error_code{});
  CHECK(w.admin.integer("EXISTS", w.name) == 1);
}

}  // namespace

TEST_CASE("case 37: a server that forgets its scripts is never noticed", "[server][case-37]") {
  private_world w;
  for (int i = 0; i < 10; ++i) {
    w.admin.ok("SCRIPT", "FLUSH");
    lease held = w.lock.acquire();
    w.admin.ok("SCRIPT", "FLUSH");
    lease again = w.lock.acquire({.owner = held.owner()});
    w.admin.ok("SCRIPT", "FLUSH");
    CHECK(again.release() == release_result::still_held);
    w.admin.ok("SCRIPT", "FLUSH");
    CHECK(held.extend(20s));
    w.admin.ok("SCRIPT", "FLUSH");
    CHECK(held.release() == release_result::released);
    w.admin.ok("SCRIPT", "FLUSH");
    CHECK_FALSE(w.lock.force_unlock());
  }
  CHECK(w.log.count_after(w.own, event_type::disconnected) == 0);
}

TEST_CASE("case 37: locking goes on while the scripts are flushed without pause", "[server][case-37]") {
  private_world w;
  std::atomic<bool> stop{false};
  std::thread flushing([&] {
    auto admin = w.server.admin();
    while (!stop) admin.ok("SCRIPT", "FLUSH");
  });
  error_code failed;
  for (int i = 0; i < 200 && !failed; ++i)
    failed = error_of([&] {
      w.lock.lock();
      w.lock.unlock();
    });
  stop = true;
  flushing.join();
  CHECK(failed == error_code{});
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 38: LOADING is waited out by lock and told as transient by a single try", "[server][case-38]") {
  private_world w(few_retries());
  fault_proxy proxy(w.server.where());
  client own(proxy.uri(), heard_by(w.log, few_retries()));
  auto const lock = own.get_lock(w.name);
  static_cast<void>(lock.is_locked());
  std::string const loading = "-LOADING Redis is loading the dataset in memory\r\n";
  proxy.inject("EVALSHA", loading, 3);
  auto const waited_out = thrown_by([&] { lock.lock(); });
  INFO("server: " << waited_out.server_text());
  REQUIRE(waited_out.code() == error_code{});
  lock.unlock();
  proxy.inject("EVALSHA", loading, 1'000'000);
  auto const error = thrown_by([&] { return lock.try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.transient());
  CHECK(error.server_text().starts_with("LOADING"));
  CHECK(error_of([&] { return lock.try_lock(100ms); }) != error_code{});
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 38: a server that loads its data when the client comes is waited for", "[server][case-38]") {
  // A key takes a while to load, and clients are heard in between.
  redis_options options{.append_only = true,
                        .arguments = since_redis_7({"--loading-process-events-interval-bytes", "1024"})};
  for (auto const* word : {"--key-load-delay", "500", "--aof-use-rdb-preamble", "no"})
    options.arguments.push_back(word);
  redis_server server(options);
  auto admin = server.admin();
  for (int i = 0; i < 3'000; ++i) admin.send({"SET", "key-" + std::to_string(i), "x"});
  for (int i = 0; i < 3'000; ++i) admin.receive();
  server.kill();
  server.start(redis_server::ready::do_not_wait);
  event_log log;
  client own(server.uri(), steady_config(log));
  own.get_lock("lock").lock();
  CHECK(server.admin().integer("EXISTS", "lock") == 1);
  CHECK(server.admin().integer("EXISTS", "key-2999") == 1);
}

TEST_CASE("case 39: a replica that was cut off from its primary is transient, and better times are waited for",
          "[server][case-39]") {
  private_world w(few_retries());
  w.lock.lock();
  w.lock.unlock();
  w.admin.ok("CONFIG", "SET", "replica-serve-stale-data", "no");
  w.admin.ok("REPLICAOF", "127.0.0.1", 1);
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.code() != error_code{});
  CHECK(error.transient());
  check_waits_until(w, [&] { w.admin.ok("REPLICAOF", "NO", "ONE"); });
}

TEST_CASE("case 40: a server that became a replica is read_only, and better times are waited for",
          "[server][case-40]") {
  private_world w(few_retries());
  w.lock.lock();
  w.lock.unlock();
  w.admin.ok("REPLICAOF", "127.0.0.1", 1);
  CHECK(error_of([&] { return w.lock.try_lock(); }) == errc::read_only);
  CHECK(is_transient(errc::read_only));
  check_waits_until(w, [&] { w.admin.ok("REPLICAOF", "NO", "ONE"); });
}

TEST_CASE("case 40: a client that comes to a replica does not wait there for a lock that it can never get",
          "[server][case-40]") {
  private_world w(few_retries());
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  w.admin.ok("PEXPIRE", w.name, 1'000'000);
  w.admin.ok("REPLICAOF", "127.0.0.1", 1);
  CHECK(error_of([&] { return w.lock.try_lock(); }) == errc::read_only);
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.lock.lock(); }); });
  REQUIRE(w.log.wait_for(event_type::connect_failed));
  w.admin.ok("REPLICAOF", "NO", "ONE");
  w.admin.ok("DEL", w.name);
  w.admin.ok("PUBLISH", channel_of(w.name), "0");  // it may have come between the two, and found somebody's lock
  CHECK(value_of(std::move(waiter)) == error_code{});
}

TEST_CASE("case 41: too few replicas are transient, and waited for", "[server][case-41]") {
  private_world w(few_retries());
  w.admin.ok("CONFIG", "SET", "min-replicas-to-write", 1);
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.transient());
  CHECK(error.server_text().find("NOREPLICAS") != std::string::npos);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  check_waits_until(w, [&] { w.admin.ok("CONFIG", "SET", "min-replicas-to-write", 0); });
}

TEST_CASE("case 42: a server whose disk fails is transient, named, and waited for", "[server][case-42]") {
  private_world w(few_retries(), {.arguments = since_redis_7({"--enable-protected-configs", "yes"})});
  {
    temp_folder gone;
    w.admin.ok("CONFIG", "SET", "dir", gone.path());
  }
  w.admin.ok("CONFIG", "SET", "save", "3600 1000000");
  w.admin.command("BGSAVE");
  REQUIRE(wait_until(
      [&] { return w.admin.text("INFO", "persistence").find("rdb_last_bgsave_status:err") != std::string::npos; }));
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.transient());
  CHECK(error.server_text().find("MISCONF") != std::string::npos);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  check_waits_until(w, [&] { w.admin.ok("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"); });
}

TEST_CASE("case 43: out of memory refuses an acquire as transient and leaves nothing behind", "[server][case-43]") {
  private_world w(few_retries());
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.transient());
  CHECK(error.server_text().find("OOM") != std::string::npos);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  check_waits_until(w, [&] { w.admin.ok("CONFIG", "SET", "maxmemory", 0); });
}

TEST_CASE("case 43: out of memory a hold is renewed, re-entered and released", "[server][case-43]") {
  auto settings = few_retries();
  settings.lock_watchdog_timeout = 3s * slowness;
  private_world w(settings);
  w.lock.lock();
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const before = w.own.snapshot().renewals;
  CHECK(wait_until([&] { return w.own.snapshot().renewals > before; }));
  static_cast<void>(error_of([&] { w.lock.lock(5s); }));
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  while (w.lock.hold_count() < 3) w.lock.lock();
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  w.lock.unlock();
  CHECK(w.lock.hold_count() == 2);
  w.lock.unlock();
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(w.log.count_after(w.own, event_type::lost) == 0);
}

TEST_CASE("case 43: out of memory a lock can still be passed on", "[server][case-43]") {
  private_world w(few_retries());
  w.lock.lock();
  auto waiter = std::async(std::launch::async, [&] {
    w.lock.lock();
    w.lock.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  w.lock.unlock();
  w.log.catch_up(w.own);
  CHECK(w.log.count(event_type::handed_off) + w.log.count(event_type::released) >= 1);
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
}

TEST_CASE("case 44: a script of somebody else that runs too long is waited out", "[server][case-44]") {
  private_world w(few_retries());
  static_cast<void>(w.lock.is_locked());
  w.admin.ok("CONFIG", "SET", "lua-time-limit", 10);
  auto endless = w.server.admin();
  endless.send({"EVAL", "while true do end", "0"});
  REQUIRE(wait_until([&] { return w.admin.command("PING").text.starts_with("BUSY"); }));
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.transient());
  auto const before = w.own.snapshot().commands;
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.lock.lock(); }); });
  REQUIRE(wait_until([&] { return w.own.snapshot().commands >= before + 3; }));
  w.admin.ok("SCRIPT", "KILL");
  CHECK(endless.receive().is_error());
  CHECK(value_of(std::move(waiter)) == error_code{});
}

TEST_CASE("case 44: renewals go on when the server is back in time", "[server][case-44]") {
  auto settings = few_retries();
  settings.lock_watchdog_timeout = 6s * slowness;
  private_world w(settings);
  lease held = w.lock.acquire();
  w.admin.ok("CONFIG", "SET", "lua-time-limit", 10);
  auto endless = w.server.admin();
  endless.send({"EVAL", "while true do end", "0"});
  REQUIRE(w.log.wait_for(event_type::at_risk));
  w.admin.ok("SCRIPT", "KILL");
  auto const before = w.own.snapshot().renewals;
  CHECK(wait_until([&] { return w.own.snapshot().renewals > before; }));
  CHECK(held.held());
  CHECK(held.release() == release_result::released);
}

TEST_CASE("case 45: a server with too many clients is transient, and comers do not spin", "[server][case-45]") {
  auto settings = few_retries();
  settings.retry_delay = 100ms;
  private_world w(settings);
  auto const rejected = [&] {
    auto const info = w.admin.text("INFO", "stats");
    std::string const key = "rejected_connections:";
    return std::stoi(info.substr(info.find(key) + key.size()));
  };
  w.admin.ok("CONFIG", "SET", "maxclients", 1);
  stopwatch since;
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK((error.transient() || error.code() == errc::connect_failed));
  CHECK(rejected() <= 4);
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.lock.lock(); }); });
  REQUIRE(wait_until([&] { return rejected() >= 8; }));
  // Pauses are random up to the longest; with none at all this would take a few milliseconds.
  CHECK(since.passed() >= 100ms);
  w.admin.ok("CONFIG", "SET", "maxclients", 100);
  CHECK(value_of(std::move(waiter)) == error_code{});
}

// Scripts as they are, on a real server: what a second copy, or somebody who is not the holder, must find.

using words = std::vector<std::string>;

namespace {

struct script_world {
  redis_server server;
  raw_redis admin = server.admin();

  // The answer for the first, and only, item of the call. What it publishes goes to "channel".
  detail::reply run(detail::script const& what, words const& keys, words const& arguments) {
    words all = {"EVAL", std::string(what.text()), std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    if (what.publishes()) all.push_back("channel");
    all.insert(all.end(), arguments.begin(), arguments.end());
    if (what.publishes()) all.emplace_back(detail::publisher(false));
    admin.send(all);
    auto const said = admin.receive();
    INFO(said.text);
    REQUIRE(said.elements.size() == 1);
    return said.elements[0];
  }
};

}  // namespace

TEST_CASE("scripts: a hand-off that finds the lock with the new owner already has not released it", "[server][again]") {
  script_world w;
  w.admin.ok("HSET", "k", "new", "1");
  auto const found = w.run(detail::reentrant_hand_off(), {"k"}, {"old", "new", "60000"});
  REQUIRE(found.elements.size() == 2);
  CHECK(found.elements[0].integer == -8);
  CHECK(found.elements[1].integer == -3);
}

TEST_CASE("scripts: a hand-off is not refused for want of memory", "[server][again]") {
  script_world w;
  w.admin.ok("HSET", "k", "old", "1");
  w.admin.ok("PEXPIRE", "k", 60'000);
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const done = w.run(detail::reentrant_hand_off(), {"k"}, {"old", "new", "60000"});
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  REQUIRE(done.elements.size() == 2);
  CHECK(done.elements[0].integer == -5);
  CHECK(done.elements[1].integer == -3);
  CHECK(w.admin.hash("k") == std::map<std::string, std::string>{{"new", "1"}});
}

TEST_CASE("scripts: a renewal of a plain lock leaves another's hold alone", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", "another", "PX", 1'000);
  CHECK(w.run(detail::plain_renew(), {"k"}, {"mine", "60000"}).integer == -8);
  CHECK(w.admin.integer("PTTL", "k") <= 1'000);
}

TEST_CASE("scripts: a permit is returned once", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", 0);
  w.admin.ok("ZADD", "timeouts", "922337203685477", "id");
  words const keys = {"k", "timeouts"};
  CHECK(w.run(detail::permit_release(), keys, {"id"}).integer == -5);
  CHECK(w.run(detail::permit_release(), keys, {"id"}).integer == -8);
  CHECK(w.admin.text("GET", "k") == "1");
}

TEST_CASE("scripts: permits of a number are given back once", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", 0);
  w.admin.ok("SET", "mark", 2);
  words const keys = {"k", "mark"};
  CHECK(w.run(detail::semaphore_give_back(), keys, {"20000"}).integer == -5);
  CHECK(w.run(detail::semaphore_give_back(), keys, {"20000"}).integer == -8);
  CHECK(w.admin.text("GET", "k") == "2");
}

// PEXPIRE reads the clock twice, and deletes the key where the time given is over by the second look: of 1 ms in one
// call of 13,000 on an idle server, and in one release of 2,000 of eight processes.
TEST_CASE("scripts: whose time to live is over at once leaves no key that has none", "[server][again]") {
  script_world w;
  auto const [script, there, keys, arguments] = GENERATE(table<detail::script const*, words, words, words>({
      {&detail::reentrant_release(), words{"old", "2"}, words{"k"}, words{"old", "1", "0"}},
      {&detail::reentrant_acquire(), words{"old", "2"}, words{"k"}, words{"old", "1", "0"}},
      {&detail::reentrant_hand_off(), words{"old", "1"}, words{"k"}, words{"old", "new", "0"}},
      {&detail::reentrant_hand_off(), words{"new", "1"}, words{"k"}, words{"old", "new", "0"}},
      {&detail::fenced_hand_off(), words{"old", "1"}, words{"k", "token"}, words{"old", "new", "0", "0"}},
      {&detail::fair_release(), words{"old", "2"}, words{"k", "queue", "scores"}, words{"old", "1", "0"}},
      {&detail::fair_hand_off(), words{"old", "1"}, words{"k", "queue", "scores"},
       words{"old", "new", "0", "30000", "1"}},
      {&detail::read_write_release(), words{"mode", "write", "old:write", "2"}, words{"k"},
       words{"1", "old:write", "1", "0"}},
  }));
  words put{"HSET", "k"};
  put.insert(put.end(), there.begin(), there.end());
  w.admin.send(put);
  w.admin.receive();
  w.admin.ok("PEXPIRE", "k", 60'000);
  w.run(*script, keys, arguments);
  CHECK(w.admin.integer("EXISTS", "k") == 0);
}

TEST_CASE("scripts: a release that finds the hold gone and the lock free tells who waits", "[server][again]") {
  script_world w;
  auto const [script, arguments, message] = GENERATE(table<detail::script const*, words, std::string>({
      {&detail::reentrant_release(), words{"old", "0", "0"}, "0"},
      {&detail::plain_release(), words{"old", "0", "0"}, "0"},
      {&detail::read_write_release(), words{"0", "old", "0", "0"}, "0"},
      {&detail::read_write_release(), words{"1", "old:write", "0", "0"}, "1"},
  }));
  channel_ear ear(w.server, "channel");
  CHECK(w.run(*script, {"k"}, arguments).integer == -8);
  CHECK(ear.next() == message);
}
