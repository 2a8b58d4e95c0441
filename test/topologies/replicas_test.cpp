// Replicas that do not confirm, by real ones that stand still or are gone. The numbers are those of
// docs/topology-cases.md.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/sentinel_set.hpp>

#include <chrono>
#include <future>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace replicas {

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Its replicas stand still, and go on with this object's end. All tests leave the set as it was.
class with_silent_replicas {
 public:
  explicit with_silent_replicas(milliseconds confirm_within, milliseconds watchdog = 30s) {
    config settings = steady_config(log);
    settings.replicas_sync_timeout = confirm_within;
    settings.timeout = confirm_within + 2s * slowness;
    settings.lock_watchdog_timeout = watchdog;
    settings.retry_attempts = 0;
    own.emplace(servers().uri(), settings);
    REQUIRE(own->get_lock(new_name()).acquire({.wait = patience}).held());
  }
  ~with_silent_replicas() { go_on(); }

  static sentinel_set& servers() {
    static sentinel_set one({.down_after = std::chrono::minutes(1)});
    return one;
  }
  static redis_server& master() { return servers().node(0); }
  static bool has(std::string_view lock) { return master().admin().integer("EXISTS", lock) == 1; }

  void fall_silent() {
    for (std::size_t const replica : {1u, 2u}) servers().node(replica).pause();
  }
  void go_on() {
    for (std::size_t const replica : {1u, 2u}) servers().node(replica).resume();
  }

  event_log log;
  std::optional<client> own;
};

// The number of the connection that waits for replicas; none: 0. The last command of one that waited is WAIT as well.
std::int64_t waiting_for_replicas(redis_server const& master) {
  std::istringstream all(master.admin().text("CLIENT", "LIST"));
  for (std::string line; std::getline(all, line);) {
    bool const waits = line.find(" flags=b ") != line.npos && line.find(" cmd=wait ") != line.npos;
    if (waits) return std::stoll(line.substr(std::string_view("id=").size()));
  }
  return 0;
}

}  // namespace

TEST_CASE("case t23: a grant that silent replicas do not confirm is an error, and nothing stays",
          "[topologies][case-t23]") {
  with_silent_replicas w(200ms);
  auto const lock = w.own->get_lock(new_name());
  w.fall_silent();
  CHECK(error_of([&] { return lock.acquire({.wait = 0ms}); }) == errc::not_synced);
  CHECK(wait_until([&] { return !w.has(lock.name()); }));
  w.go_on();
  CHECK(lock.acquire({.wait = patience}).held());
}

TEST_CASE("case t24: of a master whose replicas are gone nobody is asked, which is told", "[topologies][case-t24]") {
  sentinel_set servers({.down_after = std::chrono::minutes(1)});
  for (std::size_t const replica : {1u, 2u}) servers.node(replica).kill();
  servers.await_replicas(0, 0);
  event_log log;
  client own(servers.uri(), steady_config(log));
  for (int i = 0; i < 3; ++i) CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  CHECK(log.count_after(own, event_type::unsynced) == 1);
  CHECK(own.snapshot().waits_met + own.snapshot().waits_failed == 0);
}

TEST_CASE("case t27: a hold whose renewals silent replicas do not confirm ends when it would have",
          "[topologies][case-t27]") {
  milliseconds const watchdog = 1'500ms * slowness;
  with_silent_replicas w(200ms, watchdog);
  auto const lock = w.own->get_lock(new_name());
  auto const held = lock.acquire({.wait = patience});
  stopwatch since;
  w.fall_silent();
  CHECK(w.log.wait_for(event_type::at_risk, lock.name()));
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(since.passed() < watchdog + bound(100ms, 2s));
}

TEST_CASE("case t41: the server's words of a release that it refuses for want of replicas are told",
          "[topologies][case-t41]") {
  with_silent_replicas w(200ms);
  auto const lock = w.own->get_lock(new_name());
  REQUIRE(lock.try_lock(patience, 5s * slowness));
  w.master().admin().ok("CONFIG", "SET", "min-replicas-to-write", 3);
  auto const told = thrown_by([&] { return lock.unlock(), true; });
  w.master().admin().ok("CONFIG", "SET", "min-replicas-to-write", 0);
  CHECK(std::string(told.what()).find("NOREPLICAS") != std::string::npos);
}

TEST_CASE("case t43: a WAIT that is ended confirms nothing", "[topologies][case-t43]") {
  with_silent_replicas w(patience);
  auto const lock = w.own->get_lock(new_name());
  w.fall_silent();
  auto tried = std::async(std::launch::async, [&] { return error_of([&] { return lock.acquire({.wait = 0ms}); }); });
  std::int64_t who = 0;
  REQUIRE(wait_until([&] { return (who = waiting_for_replicas(w.master())) != 0; }));
  stopwatch since;
  CHECK(w.master().admin().integer("CLIENT", "UNBLOCK", who, "ERROR") == 1);
  CHECK(tried.get() == errc::not_synced);
  CHECK(since.passed() < patience / 2);
  CHECK(wait_until([&] { return !w.has(lock.name()); }));
}

}  // namespace replicas
