// Cases 26 to 33: somebody else touches the data.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Renewed every second, with room for a slow machine.
config watched() {
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 3s * slowness;
  return settings;
}

// Until a renewal must have seen what happened; twice of it is enough for a slow machine.
constexpr auto renewal_bound = 2s * slowness;

}  // namespace

TEST_CASE("case 26: a key of another type is wrong_type, asked once, and left alone", "[server][case-26]") {
  common_world w;
  w.admin.ok("RPUSH", w.name, "something", "else");
  auto const before = w.own.snapshot().scripts;
  auto const error = thrown_by([&] { w.lock.lock(); });
  CHECK(error.code() == errc::wrong_type);
  CHECK(error.server_text().find("WRONGTYPE") != std::string::npos);
  CHECK(w.own.snapshot().scripts <= before + 2);  // the second one only if the script was not known
  CHECK(error_of([&] { return w.lock.try_lock(1s); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.lock.acquire(); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.lock.force_unlock(); }) == errc::wrong_type);
  CHECK(w.admin.integer("LLEN", w.name) == 2);
  CHECK(w.admin.integer("PTTL", w.name) == -1);
  w.admin.ok("DEL", w.name);
}

TEST_CASE("case 26: a key of another type disturbs no other lock of the same group", "[server][case-26]") {
  common_world w;
  w.admin.ok("SET", w.name, "text");
  auto const fine = w.own.get_lock(new_name());
  for (int i = 0; i < 20; ++i) {
    auto good = fine.async_lock(owner::this_thread(), asio::use_future);
    auto bad = w.lock.async_lock(owner::make(), asio::use_future);
    auto also_good = fine.async_lock(owner::this_thread(), asio::use_future);
    CHECK(error_in(std::move(bad)) == errc::wrong_type);
    CHECK(error_in(std::move(good)) == error_code{});
    CHECK(error_in(std::move(also_good)) == error_code{});
  }
  CHECK(fine.hold_count() == 40);
  CHECK(fine.force_unlock());
  w.admin.ok("DEL", w.name);
}

TEST_CASE("case 27: a count that is no number is server_error and the time to live stays", "[server][case-27]") {
  common_world w;
  w.lock.lock(60s);
  w.admin.ok("HSET", w.name, w.field(owner::this_thread()), "many");
  w.admin.ok("PEXPIRE", w.name, 10'000);
  auto const error = thrown_by([&] { w.lock.lock(); });
  CHECK(error.code() == errc::server_error);
  CHECK(error.server_text().find("not an integer") != std::string::npos);
  CHECK(w.admin.integer("PTTL", w.name) <= 10'000);
  CHECK(w.admin.integer("PTTL", w.name) > 0);
  CHECK(w.admin.hash(w.name)[w.field(owner::this_thread())] == "many");
}

TEST_CASE("case 28: a lock without time to live is waited for, warned about, and tried again with a cap",
          "[server][case-28]") {
  common_world w;
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  w.own.connect();
  CHECK_FALSE(w.lock.try_lock(brief_wait));
  CHECK(w.log.wait_for(event_type::no_time_to_live, w.name));
  auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience * 2); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name, 2));
  // Deleted without a message: only the waiter's own cap brings it back.
  w.admin.ok("DEL", w.name);
  CHECK(value_of(std::move(waiter), patience * 2));
}

TEST_CASE("case 28: waiting for a lock without time to live does not spin", "[server][case-28]") {
  common_world w;
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  auto const before = w.own.snapshot().scripts;
  CHECK_FALSE(w.lock.try_lock(1s));
  CHECK(w.own.snapshot().scripts - before < 20);
  w.admin.ok("DEL", w.name);
}

TEST_CASE("case 29: a key deleted while held is a loss at the next renewal, and unlock says so", "[server][case-29]") {
  private_world w(watched());
  lease held = w.lock.acquire();
  w.lock.is_locked();
  stopwatch since;
  w.admin.ok("DEL", w.name);
  REQUIRE(w.log.wait_for(event_type::lost, w.name));
  CHECK(since.passed() <= renewal_bound);
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK(held.release() == release_result::expired);
  w.lock.lock();
  w.admin.ok("DEL", w.name);
  REQUIRE(w.log.wait_for(event_type::lost, w.name, 2));
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::lease_lost);
}

TEST_CASE("case 30: PERSIST and a shortened time to live are mended by the next renewal", "[server][case-30]") {
  private_world w(watched());
  lease held = w.lock.acquire();
  auto const renewed = [&] {
    auto const before = w.own.snapshot().renewals;
    return wait_until([&] { return w.own.snapshot().renewals > before; });
  };
  w.admin.ok("PERSIST", w.name);
  CHECK(renewed());
  CHECK(w.admin.integer("PTTL", w.name) > 0);
  w.admin.ok("PEXPIRE", w.name, milliseconds(renewal_bound).count());
  CHECK(renewed());
  CHECK(w.admin.integer("PTTL", w.name) > milliseconds(renewal_bound).count());
  w.admin.ok("PEXPIRE", w.name, 1'000'000);
  CHECK(renewed());
  CHECK(held.held());
  CHECK(w.admin.integer("PTTL", w.name) > 900'000);
  CHECK(held.release() == release_result::released);
}

TEST_CASE("case 30: RENAME is a loss, COPY is nothing", "[server][case-30]") {
  private_world w(watched());
  lease held = w.lock.acquire();
  w.admin.ok("COPY", w.name, "copy");
  auto const before = w.own.snapshot().renewals;
  CHECK(wait_until([&] { return w.own.snapshot().renewals > before; }));
  CHECK(held.held());
  w.admin.ok("RENAME", w.name, "elsewhere");
  CHECK(w.log.wait_for(event_type::lost, w.name));
  CHECK_FALSE(held.held());
  CHECK(w.admin.integer("EXISTS", "elsewhere") == 1);
}

TEST_CASE("case 30: a time to live that is shortened below the next renewal is a loss", "[server][case-30]") {
  private_world w(watched());
  lease held = w.lock.acquire();
  w.admin.ok("PEXPIRE", w.name, 1);
  CHECK(w.log.wait_for(event_type::lost, w.name));
  CHECK_FALSE(held.held());
}

TEST_CASE("case 31: with a foreign field beside its own a holder works on and touches nothing of it",
          "[server][case-31]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  lease ours = w.lock.acquire();
  auto const who = owner::make();
  w.admin.ok("HSET", w.name, other.id() + ":" + to_string(who), 1);
  CHECK(w.lock.is_held_by(ours.owner()));
  CHECK(other.get_lock(w.name).is_held_by(who));
  lease again = w.lock.acquire({.owner = ours.owner()});
  CHECK(again.held());
  CHECK(again.release() == release_result::still_held);
  CHECK(w.admin.hash(w.name).size() == 2);
  CHECK(ours.release() == release_result::released);
}

TEST_CASE("case 32: FLUSHALL and SWAPDB are a loss for the holder and let the waiter in by its hint",
          "[server][case-32]") {
  bool const swapped = GENERATE(false, true);
  private_world w(watched());
  client other(w.server.uri(), heard_by(w.log, watched()));
  lease held = w.lock.acquire();
  auto waiter = std::async(std::launch::async, [&] { return other.get_lock(w.name).try_lock(patience); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  if (swapped)
    w.admin.ok("SWAPDB", 0, 1);
  else
    w.admin.ok("FLUSHALL");
  CHECK(w.log.wait_for(event_type::lost, w.name));
  CHECK_FALSE(held.held());
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 33: junk on the channel is ignored and a forged message never grants", "[server][case-33]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] {
    bool const held = w.lock.try_lock(patience * 2);
    if (held) w.lock.unlock();
    return held;
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  auto const channel = channel_of(w.name);
  for (auto const* junk : {"", "1", "-1", "00", "0 ", "zero", "9223372036854775808"})
    w.admin.ok("PUBLISH", channel, junk);
  w.admin.ok("PUBLISH", channel, std::string(10'000, 'x'));
  REQUIRE(wait_until([&] { return w.own.snapshot().messages == 8; }));

  // A flood: every message is one try at most, those that come during a try are one together.
  auto const before = w.own.snapshot().scripts;
  std::vector<std::vector<std::string>> const flood(1'000, {"PUBLISH", channel, "0"});
  w.admin.send_together(flood);
  for (std::size_t i = 0; i < flood.size(); ++i) w.admin.receive();
  REQUIRE(wait_until([&] { return w.own.snapshot().messages == 1'008; }));
  CHECK(w.own.snapshot().scripts - before <= 500);
  CHECK(w.own.snapshot().held == 0);
  CHECK(theirs.is_held_by_current_thread());
  theirs.unlock();
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 33: junk on the channel costs no try", "[server][case-33]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  other.get_lock(w.name).lock();
  auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  // The try after the confirmation is the second one.
  REQUIRE(wait_until([&] { return w.own.snapshot().scripts >= 2; }));
  auto const tries = w.own.snapshot().scripts;
  for (int i = 0; i < 100; ++i) w.admin.ok("PUBLISH", channel_of(w.name), "junk");
  REQUIRE(wait_until([&] { return w.own.snapshot().messages == 100; }));
  CHECK(w.own.snapshot().scripts == tries);
  other.get_lock(w.name).unlock();
  CHECK(value_of(std::move(waiter)));
}
