// Cases 46 and 48 to 53: what the server's access rules and missing commands do.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <future>
#include <string>
#include <utility>

using namespace latchkey;
using namespace latchkey::test;

namespace {

std::int64_t denied_logins(raw_redis& admin) {
  auto const info = admin.text("INFO", "stats");
  std::string const key = "acl_access_denied_auth:";
  auto const at = info.find(key);
  return at == std::string::npos ? 0 : std::stoll(info.substr(at + key.size()));
}

}  // namespace

TEST_CASE("case 46: a missing or wrong password is auth_failed, not tried over and over, and never shown",
          "[server][case-46]") {
  redis_server server(
      {.arguments = {"--user", "till", "on", ">s3cret", "~*", "&*", "+@all", "--user", "default", "off"}});
  event_log log;
  auto const try_as = [&](config settings) {
    client own(server.uri(), heard_by(log, std::move(settings)));
    auto const error = thrown_by([&] { return own.get_lock("lock").try_lock(); });
    CHECK(std::string(error.what()).find("wr0ng") == std::string::npos);
    return error.code();
  };
  CHECK(try_as(steady_config()) == errc::auth_failed);
  CHECK(try_as(as_user("till", "wr0ng")) == errc::auth_failed);
  CHECK(try_as(as_user("nobody", "wr0ng")) == errc::auth_failed);
  CHECK(try_as(as_user("", "wr0ng")) == errc::auth_failed);
  CHECK(try_as(as_user("till", "s3cret")) == error_code{});
  CHECK(log.words().find("wr0ng") == std::string::npos);
  CHECK(log.words().find("s3cret") == std::string::npos);

  // Also a call that waits ends at once: waiting would not mend a password.
  client own(server.uri(), as_user("till", "wr0ng"));
  CHECK(error_of([&] { own.get_lock("lock").lock(); }) == errc::auth_failed);
  auto admin = server.admin();
  admin.ok("AUTH", "till", "s3cret");
  CHECK(denied_logins(admin) <= 12);
}

TEST_CASE("case 46: a password in the URI wins, and is decoded", "[server][case-46]") {
  redis_server server({.tcp = true, .arguments = {"--requirepass", "p@ss:word"}});
  auto const port = std::to_string(server.where().port);
  client own("redis://:p%40ss%3Aword@127.0.0.1:" + port + "/2", as_user("", "wr0ng"));
  CHECK(own.get_lock("lock").try_lock());
  client named("redis://default:p%40ss%3Aword@127.0.0.1:" + port, as_user("till", "wr0ng"));
  CHECK(named.get_lock("lock").try_lock());
}

TEST_CASE("case 46: a hold is lost at its deadline when the password was changed", "[server][case-46]") {
  redis_server server;
  auto admin = server.admin();
  admin.ok("ACL", "SETUSER", "till", "on", ">s3cret", "~*", "&*", "+@all");
  event_log log;
  auto settings = quick_config(log);
  settings.username = "till";
  settings.password = "s3cret";
  client own(server.uri(), settings);
  lease held = own.get_lock("lock").acquire();
  stopwatch since;
  admin.ok("ACL", "SETUSER", "till", "resetpass", ">other");
  admin.kill_clients("user=till");
  CHECK(log.wait_for(event_type::lost));
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  // It waited with pauses instead of knocking all the time.
  CHECK(denied_logins(admin) < 200);
  CHECK(error_of([&] { return own.get_lock("lock").try_lock(); }) == errc::auth_failed);
  log.catch_up(own);
  CHECK(log.words().find("s3cret") == std::string::npos);
}

TEST_CASE("case 48: a user who may not run scripts is told the server's words", "[server][case-48]") {
  limited_world w("-eval", "-evalsha");
  auto const error = thrown_by([&] { return w.lock->try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK_FALSE(error.transient());
  CHECK(error.server_text().find("NOPERM") != std::string::npos);
  CHECK(error_of([&] { w.lock->lock(); }) == errc::server_error);
  CHECK(error_of([&] { return w.lock->acquire(); }) == errc::server_error);
}

TEST_CASE("case 49: a command denied inside the script is server_error and leaves no lock without end",
          "[server][case-49]") {
  auto const denied = GENERATE(as<std::string>(), "-exists", "-hincrby", "-pexpire", "-hget", "-pttl", "-hset", "-hdel",
                               "-del", "-persist", "-hexists");
  INFO("rule: " << denied);
  limited_world w(denied);
  bool held = false;
  auto const first = error_of([&] { held = w.lock->try_lock(); });
  CHECK((first == errc::server_error || (first == error_code{} && held)));
  CHECK(w.admin.integer("PTTL", w.name) != -1);
  if (!held) return;
  static_cast<void>(error_of([&] { return w.lock->try_lock(); }));
  CHECK(w.admin.integer("PTTL", w.name) > 0);
  while (error_of([&] { w.lock->unlock(); }) != errc::not_owner) CHECK(w.admin.integer("PTTL", w.name) != -1);
  // Who holds the lock and may not wait any more is helped by the lease at the latest.
  CHECK(w.admin.integer("PTTL", w.name) != -1);
}

TEST_CASE("case 50: without the right to publish the lock is released, with an event, and waiters come by their hint",
          "[server][case-50]") {
  limited_world w("resetchannels", "&nothing");
  client other(w.server.uri(), steady_config());
  lease held = w.lock->acquire({.lease = 2s});
  auto waiter = std::async(std::launch::async, [&] { return other.get_lock(w.name).try_lock(patience); });
  REQUIRE(wait_until([&] { return other.snapshot().waiting == 1; }));
  CHECK(held.release() == release_result::released);
  CHECK(w.log.wait_for(event_type::publish_refused));
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 51: without the right to subscribe waiters poll, and say so once", "[server][case-51]") {
  limited_world w("-subscribe");
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  for (int i = 0; i < 2; ++i) {
    theirs.lock();
    auto const before = w.own->snapshot().scripts;
    auto waiter = std::async(std::launch::async, [&] { return w.lock->try_lock(patience); });
    REQUIRE(w.log.wait_for(event_type::waiting, w.name, i + 1));
    REQUIRE(w.log.wait_for(event_type::subscribe_refused));
    CHECK(w.own->snapshot().messages_refused);
    theirs.unlock();
    CHECK(value_of(std::move(waiter)));
    CHECK(w.own->snapshot().scripts - before < 100);
    CHECK(w.lock->force_unlock());
  }
  CHECK(w.log.count_after(*w.own, event_type::subscribe_refused) == 1);
}

TEST_CASE("case 51: without the right to the channel waiters poll", "[server][case-51]") {
  limited_world w("resetchannels", "&nothing");
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] { return w.lock->try_lock(patience); });
  REQUIRE(w.log.wait_for(event_type::subscribe_refused));
  theirs.unlock();
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 52: without the right to the key the call is server_error and other keys work", "[server][case-52]") {
  // The channel is a key of the scripts too, so that a cluster sees where it belongs.
  limited_world w("resetkeys", "~allowed*", "~redisson_lock__channel:{allowed*");
  auto const error = thrown_by([&] { return w.lock->try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.server_text().find("NOPERM") != std::string::npos);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  auto const allowed = w.own->get_lock("allowed-1");
  CHECK(allowed.try_lock());
  allowed.unlock();
}

TEST_CASE("case 53: where CLIENT is missing or refused the client works, unfenced, and says so", "[server][case-53]") {
  SECTION("by access rules") {
    limited_world w("-client", "+client|setname", "+client|info", "+client|list");
    CHECK(w.lock->try_lock());
    CHECK(w.log.wait_for(event_type::kill_refused));
    CHECK_FALSE(w.own->snapshot().fenced);
    w.lock->unlock();
    CHECK(w.log.count_after(*w.own, event_type::kill_refused) == 1);
  }
  SECTION("all of it by access rules") {
    limited_world w("-client");
    CHECK(w.lock->try_lock());
    CHECK_FALSE(w.own->snapshot().fenced);
    w.lock->unlock();
  }
  SECTION("CLIENT LIST alone") {
    limited_world w("-client", "+client|setname", "+client|info", "+client|kill");
    CHECK(w.lock->try_lock());
    CHECK(w.log.wait_for(event_type::lane_unchecked));
    w.lock->unlock();
  }
  SECTION("by another name") {
    private_world w(as_user("", ""), {.arguments = {"--rename-command", "CLIENT", ""}});
    CHECK(w.lock.try_lock());
    CHECK(w.log.wait_for(event_type::kill_refused));
    CHECK_FALSE(w.own.snapshot().fenced);
    w.lock.unlock();
  }
}

TEST_CASE("case 53: where KILL is refused a lost answer is asked for again at once", "[server][case-53]") {
  limited_world w("-client", "+client|setname", "+client|info", "+client|list");
  fault_proxy proxy(w.server.where());
  client own(proxy.uri(), as_user("till", "s3cret"));
  auto const lock = own.get_lock(w.name);
  lock.lock();
  lock.unlock();
  proxy.cut_after(fault_proxy::way::replies, 0);
  lock.lock();
  CHECK(proxy.cut_happened());
  CHECK(lock.hold_count() == 1);
  lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 53: commands that a server may not know are not used, and a missing EVALSHA is told",
          "[server][case-53]") {
  redis_server server;
  fault_proxy proxy(server.where());
  client own(proxy.uri(), steady_config());
  auto const lock = own.get_lock("lock");
  lock.lock();
  CHECK_FALSE(value_of(lock.async_try_lock(owner::make(), brief_wait, asio::use_future)));
  lock.unlock();
  for (auto const* unused : {"HELLO", "WAIT", "WAITAOF", "SPUBLISH", "SSUBSCRIBE", "FCALL"})
    CHECK(proxy.requests().count(unused) == 0);

  private_world w(as_user("", ""), {.arguments = {"--rename-command", "EVALSHA", ""}});
  w.lock.lock();  // a script that the server has not goes whole
  w.lock.unlock();
  auto const error = thrown_by([&] { return w.lock.try_lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.server_text().find("unknown command") != std::string::npos);
}
