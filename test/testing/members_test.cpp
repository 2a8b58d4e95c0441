#include <testing/watched.hpp>

#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace latchkey;
using namespace latchkey::test;

namespace asio = boost::asio;

namespace {

lock_error refusal_of(distributed_lock const& lock) {
  try {
    static_cast<void>(lock.try_lock());
  } catch (lock_error const& problem) {
    return problem;
  }
  return lock_error(error_code{});
}

}  // namespace

TEST_CASE("uri: a socket in a folder of our own, which goes with the server") {
  std::string path;
  {
    testing::server redis;
    path = redis.uri().substr(std::string_view("unix://").size());
    CHECK(std::filesystem::is_socket(path));
    auto const folder = std::filesystem::path(path).parent_path();
    CHECK((std::filesystem::status(folder).permissions() & std::filesystem::perms::all) ==
          std::filesystem::perms::owner_all);
    path = folder.string();
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("lose: the holder is told, and told of nothing else") {
  testing::server redis;
  client const own(redis.uri());
  auto lost = own.get_lock("job").acquire();
  auto kept = own.get_lock("other").acquire();
  watched_loss loss(lost), no_loss(kept);
  CHECK(redis.lose("job"));
  CHECK(loss.came());
  CHECK_FALSE(lost.held());
  CHECK(lost.release() == release_result::expired);
  CHECK(kept.held());
  CHECK(no_loss.is_out());
  CHECK(own.snapshot().reconnects <= 2);  // of the other kinds of connections; none was cut
  CHECK_FALSE(redis.lose("job"));
  CHECK_FALSE(redis.lose("never heard of"));
}

TEST_CASE("lose: directly behind a renewal that was answered before") {
  testing::server redis;
  client const own(redis.uri());
  for (int i = 0; i < 50; ++i) {
    auto hold = own.get_lock("job").acquire();
    watched_loss loss(hold);
    redis.advance(10s);
    redis.lose("job");
    CHECK_FALSE(hold.held());
    REQUIRE(loss.came());
  }
}

TEST_CASE("lose: of a lease with a fixed length is seen by whoever asks, and at its end") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_lock("job").acquire({.lease = 30s});
  watched_loss loss(hold);
  redis.lose("job");
  CHECK(hold.held());
  redis.advance(30s);
  CHECK(loss.came());
}

TEST_CASE("lose: whatever the kind") {
  testing::server redis;
  client const own(redis.uri());
  for (auto const& lock : {own.get_lock("a"), own.get_fair_lock("b"), own.get_fenced_lock("c"), own.get_spin_lock("d"),
                           own.get_plain_lock("e"), own.get_non_reentrant_lock("f"),
                           own.get_read_write_lock("g").read_lock(), own.get_read_write_lock("h").write_lock()}) {
    INFO(lock.name());
    auto hold = lock.acquire();
    REQUIRE(redis.holders(lock.name()).size() == 1);
    CHECK(redis.holders(lock.name())[0].client_id == own.id());
    CHECK(redis.holders(lock.name())[0].count == 1);
    watched_loss loss(hold);
    CHECK(redis.lose(lock.name()));
    CHECK(loss.came());
    CHECK(redis.holders(lock.name()).empty());
  }
}

TEST_CASE("take: somebody else has it, for 30 s") {
  testing::server redis;
  client const own(redis.uri());
  auto const lock = own.get_lock("job");
  auto hold = lock.acquire();
  watched_loss loss(hold);
  redis.take("job");
  CHECK(loss.came());
  REQUIRE(redis.holders("job").size() == 1);
  CHECK(redis.holders("job")[0].client_id == testing::server::other_holder);
  CHECK_FALSE(redis.holders("job")[0].from);
  CHECK_FALSE(lock.try_lock());
  CHECK(lock.remaining_time_to_live() == std::chrono::milliseconds(30s));
  redis.advance(31s);
  CHECK(lock.try_lock());
}

TEST_CASE("take: whatever the kind") {
  testing::server redis;
  client const own(redis.uri());
  auto const rw = own.get_read_write_lock("sides");
  for (auto const& lock :
       {own.get_plain_lock("plain"), rw.write_lock(), own.get_fair_lock("fair"), own.get_spin_lock("s")}) {
    INFO(lock.name());
    auto hold = lock.acquire();
    watched_loss loss(hold);
    redis.take(lock.name());
    CHECK(loss.came());
    CHECK_FALSE(lock.try_lock());
    CHECK(redis.holders(lock.name()).at(0).client_id == testing::server::other_holder);
  }
  CHECK(redis.holders("sides").at(0).writes);
  CHECK_FALSE(rw.read_lock().try_lock());
}

TEST_CASE("take: fencing tokens rise") {
  testing::server redis;
  client const own(redis.uri());
  auto const lock = own.get_fenced_lock("job");
  auto const first = lock.acquire().fencing_token().value();
  redis.take("job");
  redis.advance(31s);
  CHECK(lock.acquire().fencing_token().value() == first + 2);
}

TEST_CASE("cut: connections break, and the hold is still there") {
  testing::server redis;
  client const own(redis.uri());
  auto const lock = own.get_lock("job");
  auto hold = lock.acquire();
  watched_loss loss(hold);
  auto const before = own.snapshot().reconnects;
  redis.cut();
  REQUIRE(wait_until([&] { return own.snapshot().reconnects > before; }));
  CHECK(hold.held());
  CHECK(loss.is_out());
  CHECK(hold.release() == release_result::released);
  CHECK(redis.holders("job").empty());
}

TEST_CASE("cut: a waiter is still served") {
  testing::server redis;
  client const own(redis.uri()), other(redis.uri());
  auto hold = other.get_lock("job").acquire();
  auto granted = own.get_lock("job").async_acquire(asio::use_future);
  REQUIRE(waits(own));
  redis.cut();
  CHECK(hold.release() == release_result::released);
  CHECK(got(std::move(granted)).held());
}

TEST_CASE("freeze: nothing is answered; thaw: what was sent runs") {
  testing::server redis;
  client const own(redis.uri());
  own.connect();
  redis.freeze();
  auto soon = own.get_lock("job").async_acquire(asio::use_future);
  CHECK(redis.holders("job").empty());
  CHECK(soon.wait_for(20ms) == std::future_status::timeout);
  redis.thaw();
  CHECK(got(std::move(soon)).held());
  redis.thaw();
}

TEST_CASE("freeze: who comes meanwhile is served after it, and what was sent before a broken connection runs") {
  testing::server redis;
  redis.freeze();
  client const own(redis.uri());
  auto soon = own.get_lock("job").async_acquire(asio::use_future);
  redis.advance(1s);
  redis.thaw();
  CHECK(got(std::move(soon)).held());
}

TEST_CASE("freeze: a holder whose renewals are not answered loses the lock at its deadline") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_lock("job").acquire();
  watched_loss loss(hold);
  redis.freeze();
  redis.advance(20s);
  CHECK(hold.held());
  CHECK(loss.is_out());
  redis.advance(10s);
  CHECK_FALSE(hold.held());
  CHECK(loss.came());
  redis.thaw();
}

TEST_CASE("fail_next: so many times, in these words, and then no more") {
  testing::server redis;
  client const own(redis.uri());
  auto const lock = own.get_lock("job");
  REQUIRE(lock.try_lock());
  lock.unlock();
  redis.fail_next("EvalSha", "NOPERM out of luck", 2);
  redis.fail_next("evalsha", "NOPERM still");
  CHECK(refusal_of(lock).code() == errc::server_error);
  CHECK(refusal_of(lock).server_text().find("out of luck") != std::string::npos);
  CHECK(refusal_of(lock).server_text().find("still") != std::string::npos);
  CHECK(lock.try_lock());
  CHECK(redis.holders("job").size() == 1);
}

TEST_CASE("fail_next: what passes by itself is tried again") {
  testing::server redis;
  config settings;
  settings.retry_delay = 1ms;
  client const own(redis.uri(), settings);
  auto const lock = own.get_lock("job");
  REQUIRE(lock.try_lock());
  lock.unlock();
  constexpr auto full = "OOM command not allowed when used memory > 'maxmemory'.";
  redis.fail_next("evalsha", full, 2);
  CHECK(lock.try_lock());
  redis.fail_next("evalsha", full, 100);
  CHECK(refusal_of(own.get_lock("other")).server_text().find("OOM") != std::string::npos);
}

TEST_CASE("fail_next: a subcommand alone") {
  testing::server redis;
  redis.fail_next("client|kill", "NOPERM no", 100);
  std::mutex mutex;
  bool refused = false;
  config settings;
  settings.on_event = [&](event const& what) {
    std::scoped_lock const guard(mutex);
    refused = refused || what.type == event_type::kill_refused;
  };
  client const own(redis.uri(), settings);
  CHECK(own.get_lock("job").try_lock());  // CLIENT SETNAME and CLIENT INFO went on
  CHECK(wait_until([&] {
    std::scoped_lock const guard(mutex);
    return refused;
  }));
}

TEST_CASE("fail_next, deny: what cannot be") {
  testing::server redis;
  CHECK_THROWS_AS(redis.fail_next("evalhsa", "ERR no"), std::invalid_argument);
  CHECK_THROWS_AS(redis.fail_next("client|dance", "ERR no"), std::invalid_argument);
  CHECK_THROWS_AS(redis.fail_next("", "ERR no"), std::invalid_argument);
  CHECK_THROWS_AS(redis.fail_next("evalsha", ""), std::invalid_argument);
  CHECK_THROWS_AS(redis.fail_next("evalsha", "ERR\r\n+OK"), std::invalid_argument);
  CHECK_THROWS_AS(redis.fail_next("evalsha", "ERR no", 0), std::invalid_argument);
  CHECK_THROWS_AS(redis.deny("publsh"), std::invalid_argument);
  CHECK_THROWS_AS(redis.allow("publsh"), std::invalid_argument);
  client const own(redis.uri());
  CHECK(own.get_lock("job").try_lock());
}

TEST_CASE("deny: without the right to a command, until it is allowed") {
  testing::server redis;
  redis.deny("EVALSHA");
  redis.deny("eval");
  client const own(redis.uri());
  auto const lock = own.get_lock("job");
  CHECK(refusal_of(lock).server_text().find("NOPERM") != std::string::npos);
  redis.allow("evalsha");
  redis.allow("eval");
  CHECK(lock.try_lock());
}

TEST_CASE("deny: inside scripts, too") {
  testing::server redis;
  redis.deny("publish");
  std::mutex mutex;
  bool refused = false;
  config settings;
  settings.on_event = [&](event const& what) {
    std::scoped_lock const guard(mutex);
    refused = refused || what.type == event_type::publish_refused;
  };
  client const own(redis.uri(), settings);
  auto hold = own.get_lock("job").acquire();
  CHECK(hold.release() == release_result::released);
  CHECK(redis.holders("job").empty());
  CHECK(wait_until([&] {
    std::scoped_lock const guard(mutex);
    return refused;
  }));
  redis.deny("exists");
  CHECK(refusal_of(own.get_lock("job")).server_text().find("can't run this command") != std::string::npos);
}

TEST_CASE("restart: with data a hold stays, without it is lost") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_lock("job").acquire();
  watched_loss loss(hold);
  auto const before = own.snapshot().renewals;
  redis.restart(true);
  REQUIRE(wait_until([&] { return own.snapshot().renewals > before; }));
  CHECK(hold.held());
  CHECK(loss.is_out());
  CHECK(redis.holders("job").size() == 1);
  redis.restart(false);
  CHECK(loss.came());
  CHECK_FALSE(hold.held());
  CHECK(redis.holders("job").empty());
  CHECK(own.get_lock("job").try_lock());
}

TEST_CASE("mute: a release is told to nobody, and the waiter looks by itself in time") {
  testing::server redis;
  client const own(redis.uri()), other(redis.uri());
  auto hold = other.get_lock("job").acquire();
  auto granted = own.get_lock("job").async_acquire(asio::use_future);
  REQUIRE(waits(own));
  REQUIRE(wait_until([&] { return sent(redis, "SUBSCRIBE") == 1; }));
  // It looks once more when it is listening. After that look it can only be told.
  REQUIRE(wait_until([&] { return sent(redis, "EVAL") == 3; }));
  redis.mute();
  CHECK(hold.release() == release_result::released);
  CHECK(granted.wait_for(50ms) == std::future_status::timeout);
  redis.advance(31s);
  auto const mine = got(std::move(granted));
  CHECK(mine.held());

  redis.mute(false);
  auto again = other.get_lock("job").async_acquire(asio::use_future);
  REQUIRE(waits(other));
  own.get_lock("job").force_unlock();
  CHECK(got(std::move(again)).held());
}

TEST_CASE("holders: readers, counts, from where; and what is no lock") {
  testing::server redis;
  client const own(redis.uri()), other(redis.uri());
  auto const mine = own.get_read_write_lock("sides").read_lock().acquire();
  auto const theirs = other.get_read_write_lock("sides").read_lock().acquire();
  auto const both = redis.holders("sides");
  REQUIRE(both.size() == 2);
  CHECK(both[0].client_id == own.id());
  CHECK(both[0].owner == to_string(mine.owner()));
  REQUIRE(both[0].from);
  CHECK(both[0].from->pid == ::getpid());
  CHECK(both[1].client_id == other.id());

  own.get_lock("job").lock();
  own.get_lock("job").lock();
  CHECK(redis.holders("job").at(0).count == 2);
  CHECK(redis.holders("nobody's").empty());
  CHECK(own.get_semaphore("permits").try_set_permits(3));
  auto const seen = own.inspect(own.get_lock("job"));
  REQUIRE(seen.holders.size() == 1);
  CHECK(seen.holders[0].client_id == own.id());
  CHECK(seen.holders[0].from);
}

TEST_CASE("commands: what was sent, line by line") {
  testing::server redis;
  client const own(redis.uri());
  auto const lock = own.get_lock("two words");
  REQUIRE(lock.try_lock());
  redis.deny("evalsha");
  CHECK(refusal_of(own.get_lock("other")).code() == errc::server_error);
  auto const all = redis.commands();
  CHECK(sent(redis, "CLIENT SETNAME latchkey:" + own.id()) >= 1);
  CHECK(std::any_of(all.begin(), all.end(), [](auto const& line) {
    return line.starts_with("EVAL") && line.find(" 1 \"two words\" ") != std::string::npos;
  }));
  CHECK(std::any_of(all.begin(), all.end(), [](auto const& line) {
    return line.starts_with("EVALSHA") && line.find(" 1 other ") != std::string::npos;
  }));
  CHECK(std::all_of(all.begin(), all.end(), [](auto const& line) { return line.find('\n') == std::string::npos; }));
  redis.allow("evalsha");
  for (int i = 0; i < 5'100; ++i) {
    lock.unlock();
    lock.lock();
  }
  CHECK(redis.commands().size() == 10'000);
}

TEST_CASE("the child of a fork leaves the server alone") {
  testing::server redis;
  client own(redis.uri());
  REQUIRE(own.get_lock("job").try_lock());
  auto* const inherited = new testing::server;
  pid_t const child = ::fork();
  if (child == 0) {
    delete inherited;
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  auto const path = inherited->uri().substr(std::string_view("unix://").size());
  CHECK(std::filesystem::is_socket(path));
  {
    client const other(inherited->uri());
    CHECK(other.get_lock("job").try_lock());
  }
  delete inherited;
}
