// What each exclusive kind costs in commands. Prints the table of the README.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/kinds.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace show_kinds {

using namespace latchkey;
using namespace latchkey::test;

namespace {

using many_clients = std::vector<client>;

many_clients connect_to_all(std::vector<std::unique_ptr<redis_server>> const& servers, int count) {
  many_clients made;
  for (int i = 0; i < count; ++i) made.emplace_back(servers[static_cast<std::size_t>(i)]->uri(), unpinged_config());
  return made;
}

std::uint64_t sent_by(many_clients const& all) {
  std::uint64_t sum = 0;
  for (auto const& one : all) sum += one.snapshot().commands;
  return sum;
}

constexpr int pairs = 100 / slowness;

// Commands of one acquisition and its release. Everything that happens once has happened before.
double free_pair(lock_kind const& kind, many_clients const& own) {
  auto const lock = kind.make(own, new_name());
  auto const turn = [&] {
    lock.lock();
    lock.unlock();
  };
  for (int i = 0; i < 20; ++i) turn();  // the connection for blocking callers comes a little later than the first
  // A majority has answered; what the others are still asked for belongs to this turn.
  CHECK(wait_until([&] {
    return std::all_of(own.begin(), own.end(), [](client const& one) {
      auto const now = one.snapshot();
      return now.held == 0 && now.in_doubt == 0;
    });
  }));
  auto const before = sent_by(own);
  for (int i = 0; i < pairs; ++i) turn();
  return double(sent_by(own) - before) / pairs;
}

void lock_and_unlock(distributed_lock const& lock, int turns) {
  for (int i = 0; i < turns; ++i) {
    lock.lock();
    lock.unlock();
  }
}

double contended_turn(lock_kind const& kind, many_clients const& a, many_clients const& b, int threads) {
  constexpr int turns = 200 / slowness;
  auto const name = new_name();
  auto const before = sent_by(a) + sent_by(b);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] { lock_and_unlock(kind.make(a, name), turns); });
      all.emplace_back([&] { lock_and_unlock(kind.make(b, name), turns); });
    }
  }
  return double(sent_by(a) + sent_by(b) - before) / (2 * threads * turns);
}

}  // namespace

TEST_CASE("every exclusive kind: a free pair costs two commands for each server", "[server][kind][show]") {
  std::vector<std::unique_ptr<redis_server>> servers;
  for (int i = 0; i < 5; ++i) servers.push_back(std::make_unique<redis_server>());
  std::printf("| kind | free: acquire + release | 2 clients, 1 caller each | 2 clients, 8 callers each |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (auto const& kind : exclusive_kinds()) {
    auto const a = connect_to_all(servers, kind.servers);
    auto const b = connect_to_all(servers, kind.servers);
    auto const alone = free_pair(kind, a);
    auto const few = contended_turn(kind, a, b, 1);
    auto const many = contended_turn(kind, a, b, 8);
    std::printf("| `%s` | %.1f | %.1f | %.1f |\n", kind.name.c_str(), alone, few, many);
    // Of several servers those that answer late may find the lock released again, and are asked for both at once; or
    // for what was left of the pair before the first one.
    CHECK(alone <= 2.0 * kind.servers + (kind.servers - 1.0) / pairs);
    if (kind.servers == 1) CHECK(alone == 2.0);
    CHECK(few > 0);
    CHECK(many > 0);
  }
}

// The read/write lock: commands per call, counted with MONITOR, and servers that refuse something.

namespace {

using commands = std::map<std::string, int>;

struct counted_rw : counted_world {
  read_write_lock rw = own.get_read_write_lock(name);
  distributed_lock reads = rw.read_lock(), writes = rw.write_lock();

  bool warmed_up() {
    auto const way = own.get_read_write_lock("way");
    return counted_world::warmed_up({way.read_lock(), way.write_lock()});
  }
};

struct limited_rw : limited_world {
  using limited_world::limited_world;
  read_write_lock rw = own->get_read_write_lock(name);
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
  client other(w.server.uri(), unpinged_config());
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
  client own(loop, w.server.uri(), unpinged_config());
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
  CHECK(error_of([&] { return w.rw.read_lock().try_lock(); }) == errc::server_error);
  CHECK(w.admin.integer("DBSIZE") == 0);
  // Beside somebody else, and beside his own write hold.
  w.admin.ok("HSET", "lock", "mode", "read", "somebody:1", 1);
  w.admin.ok("PEXPIRE", "lock", 500'000);
  CHECK(error_of([&] { return w.rw.read_lock().try_lock(); }) == errc::server_error);
  CHECK(w.admin.hash("lock") == fields{{"mode", "read"}, {"somebody:1", "1"}});
  w.admin.ok("DEL", "lock");
  w.rw.write_lock().lock(40s);
  auto const before = w.admin.hash("lock");
  CHECK(error_of([&] { w.rw.read_lock().lock(100s); }) == errc::server_error);
  CHECK(w.admin.hash("lock") == before);
  CHECK(w.admin.integer("PTTL", "lock") <= 40'000);
  w.rw.write_lock().unlock();
}

TEST_CASE("read/write lock: a release works where PUBLISH is refused", "[server][kind][case-48]") {
  limited_rw w("-publish");
  for (auto const& side : {w.rw.read_lock(), w.rw.write_lock()}) {
    side.lock();
    side.unlock();
    CHECK_FALSE(side.is_locked());
  }
  CHECK(w.log.wait_for(event_type::publish_refused, "lock", 2));
}

}  // namespace show_kinds
