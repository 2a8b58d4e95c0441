// The read/write lock: commands per call, counted with MONITOR, and servers that refuse something.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/command_counter.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using commands = std::map<std::string, int>;
using fields = std::map<std::string, std::string>;

config without_ping() {
  auto settings = steady_config();
  settings.ping_interval = 0ms;
  return settings;
}

struct counted_rw : private_world {
  counted_rw() : private_world(without_ping(), {.tcp = true}) {}

  command_counter counter{server};
  read_write_lock rw = own.get_read_write_lock(name);
  distributed_lock reads = rw.read_lock(), writes = rw.write_lock();

  // Connected on both lanes, and the server knows the scripts.
  bool warmed_up() {
    auto const way = own.get_read_write_lock("way");
    auto const pair = [&] {
      for (auto const& side : {way.read_lock(), way.write_lock()}) {
        side.lock();
        side.unlock();
        value_of(side.async_acquire(asio::use_future)).release();
      }
      return counter.take() == commands{{"EVALSHA", 8}};
    };
    return wait_until([&] { return pair() && pair() && pair(); });
  }
};

// A server of which one user may not do everything.
struct limited_rw {
  template <class... Rules>
  explicit limited_rw(Rules const&... rules) {
    admin.ok("ACL", "SETUSER", "till", "on", ">s3cret", "~*", "&*", "+@all", rules...);
    auto settings = steady_config(log);
    settings.username = "till";
    settings.password = "s3cret";
    settings.retry_attempts = 1;
    own.emplace(server.uri(), settings);
    rw = own->get_read_write_lock("lock");
  }
  event_log log;
  redis_server server;
  raw_redis admin = server.admin();
  std::optional<client> own;
  std::optional<read_write_lock> rw;
};

}  // namespace

TEST_CASE("read/write lock: one EVALSHA per free acquire and one per release, of either side", "[server][kind]") {
  counted_rw w;
  REQUIRE(w.warmed_up());
  constexpr int rounds = 50;
  for (auto const& side : {w.reads, w.writes}) {
    for (int i = 0; i < rounds; ++i) {
      side.lock();
      side.unlock();
    }
    CHECK(w.counter.take() == commands{{"EVALSHA", 2 * rounds}});
    for (int i = 0; i < rounds; ++i) value_of(side.async_acquire(asio::use_future)).release();
    CHECK(w.counter.take() == commands{{"EVALSHA", 2 * rounds}});
  }
  for (auto const& side : {w.writes, w.reads, w.reads, w.writes}) side.lock();
  for (auto const& side : {w.writes, w.writes, w.reads, w.reads}) side.unlock();
  CHECK(w.counter.take() == commands{{"EVALSHA", 8}});
}

TEST_CASE("read/write lock: what contention costs", "[server][kind]") {
  counted_rw w;
  REQUIRE(w.warmed_up());
  client other(w.server.uri(), without_ping());
  auto const theirs = other.get_read_write_lock(w.name);
  theirs.write_lock().lock();
  constexpr int readers = 40;
  std::vector<std::future<lease>> waiting;
  auto const before = w.own.snapshot().scripts;
  waiting.push_back(w.reads.async_acquire(asio::use_future));
  // The first reader tries when it comes and once more when the server listens for it; the others not at all. While
  // its try is under way others would go beside it, so a query waits for the answer.
  REQUIRE(wait_until([&] { return w.own.snapshot().scripts == before + 2; }));
  CHECK_FALSE(value_of(w.reads.async_is_locked(asio::use_future)));
  auto const tried = w.own.snapshot().scripts;
  for (int i = 1; i < readers; ++i) waiting.push_back(w.reads.async_acquire(asio::use_future));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == readers; }));
  theirs.write_lock().unlock();
  for (auto& one : waiting) CHECK(one.wait_for(patience) == std::future_status::ready);
  // The message lets the first reader in with one call, and its answer all others with one.
  CHECK(w.own.snapshot().scripts <= tried + 2);
}

TEST_CASE("read/write lock: many items of both sides share a call, and each fails alone", "[server][kind]") {
  counted_rw w;
  REQUIRE(w.warmed_up());
  w.admin.ok("SET", "many-7", "text");
  asio::io_context loop;
  client own(loop, w.server.uri(), without_ping());
  REQUIRE(connect_on(loop, own));
  w.counter.take();
  constexpr std::size_t locks = 40;
  std::vector<distributed_lock> sides;
  for (std::size_t i = 0; i < locks; ++i) {
    auto const rw = own.get_read_write_lock("many-" + std::to_string(i));
    sides.push_back(i % 2 == 0 ? rw.read_lock() : rw.write_lock());
  }
  auto const me = owner::make();
  std::vector<error_code> results(locks);
  auto const ask = [&](auto start) {
    auto left = sides.size();
    asio::post(loop, [&] {
      for (std::size_t i = 0; i < sides.size(); ++i)
        start(sides[i], [&, i](error_code error) {
          results[i] = error;
          --left;
        });
    });
    REQUIRE(run_until(loop, [&] { return left == 0; }));
    CHECK(w.counter.take() == commands{{"EVALSHA", 1}});
  };
  ask([&](auto const& lock, auto handler) { lock.async_lock(me, handler); });
  for (std::size_t i = 0; i < results.size(); ++i) CHECK(results[i] == (i == 7 ? errc::wrong_type : error_code{}));
  sides.erase(sides.begin() + 7);
  CHECK(w.admin.integer("DBSIZE") == 2 * (locks / 2) + locks / 2);
  results.assign(sides.size(), errc::closed);
  ask([&](auto const& side, auto handler) { side.async_unlock(me, handler); });
  CHECK(results == std::vector<error_code>(sides.size()));
  CHECK(w.admin.integer("DBSIZE") == 1);
}

TEST_CASE("read/write lock: when memory is short a new hold is refused whole, and everything else works",
          "[server][kind][case-43]") {
  private_world w;
  auto const rw = w.own.get_read_write_lock(w.name);
  auto const reads = rw.read_lock(), writes = rw.write_lock();
  auto const me = owner::make();
  auto const field = w.field(me);
  auto const run = [](auto future) { return error_in(std::move(future)); };
  w.admin.ok("CONFIG", "SET", "maxmemory-policy", "noeviction");
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  CHECK(run(reads.async_try_lock(me, asio::use_future)) == errc::server_error);
  CHECK(run(writes.async_try_lock(me, asio::use_future)) == errc::server_error);
  CHECK(w.admin.integer("DBSIZE") == 0);
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  REQUIRE_FALSE(run(writes.async_lock(me, asio::use_future)));
  REQUIRE_FALSE(run(reads.async_lock(me, 10s, asio::use_future)));
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  CHECK_FALSE(run(reads.async_lock(me, 60s, asio::use_future)));
  CHECK_FALSE(run(writes.async_lock(me, 90s, asio::use_future)));
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {field, "2"}, {field + ":write", "2"}});
  CHECK(run(reads.async_try_lock(owner::make(), asio::use_future)) == error_code{});
  CHECK_FALSE(run(writes.async_unlock(me, asio::use_future)));
  CHECK_FALSE(run(writes.async_unlock(me, asio::use_future)));
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {field, "2"}});
  CHECK_FALSE(run(reads.async_unlock(me, asio::use_future)));
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {field, "1"}});
  CHECK_FALSE(run(reads.async_unlock(me, asio::use_future)));
  CHECK(w.admin.integer("DBSIZE") == 0);
}

TEST_CASE("read/write lock: who may not write the keys of read holds gets none, and nothing is left behind",
          "[server][kind][case-48]") {
  limited_rw w("-set");
  CHECK(error_of([&] { return w.rw->read_lock().try_lock(); }) == errc::server_error);
  CHECK(w.admin.integer("DBSIZE") == 0);
  // Beside somebody else, and beside his own write hold.
  w.admin.ok("HSET", "lock", "mode", "read", "somebody:1", 1);
  w.admin.ok("PEXPIRE", "lock", 500'000);
  CHECK(error_of([&] { return w.rw->read_lock().try_lock(); }) == errc::server_error);
  CHECK(w.admin.hash("lock") == fields{{"mode", "read"}, {"somebody:1", "1"}});
  w.admin.ok("DEL", "lock");
  w.rw->write_lock().lock(40s);
  auto const before = w.admin.hash("lock");
  CHECK(error_of([&] { w.rw->read_lock().lock(100s); }) == errc::server_error);
  CHECK(w.admin.hash("lock") == before);
  CHECK(w.admin.integer("PTTL", "lock") <= 40'000);
  w.rw->write_lock().unlock();
}

TEST_CASE("read/write lock: a release works where PUBLISH is refused", "[server][kind][case-48]") {
  limited_rw w("-publish");
  for (auto const& side : {w.rw->read_lock(), w.rw->write_lock()}) {
    side.lock();
    side.unlock();
    CHECK_FALSE(side.is_locked());
  }
  CHECK(w.log.wait_for(event_type::publish_refused, "lock", 2));
}
