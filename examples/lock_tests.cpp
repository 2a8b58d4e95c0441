// How to test code that holds a lock: a modelled server inside the test, which loses the lock, gives it to somebody
// else, lets leases end and refuses, when the test says so. Needs no Redis, and nothing sleeps. Usage: lock_tests

#include <latchkey/latchkey.hpp>
#include <latchkey/testing/server.hpp>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string_view>

using namespace std::chrono_literals;

namespace {

// --- the code that is tested ---

enum class outcome { done, stopped, busy, refused };

// Writes pages until all are written or the lock is lost. `page` is told of each.
template <class Page>
outcome write_report(latchkey::client const& client, int pages, Page page) try {
  auto hold = client.get_lock("report").acquire({.wait = 0s});
  if (!hold) return outcome::busy;
  for (int i = 0; i < pages; ++i) {
    if (!hold.held()) return outcome::stopped;
    page(i);
  }
  return hold.release() == latchkey::release_result::released ? outcome::done : outcome::stopped;
} catch (latchkey::lock_error const&) {
  return outcome::refused;
}

// --- its tests ---

bool all_good = true;

void expect(bool good, std::string_view what) {
  std::cout << (good ? "ok      " : "FAILED  ") << what << "\n";
  all_good = all_good && good;
}

void test_report() {
  auto const nothing = [](int) {};
  // [test]
  latchkey::testing::server redis;  // a modelled Redis in this process
  latchkey::client const client(redis.uri());
  expect(write_report(client, 3, nothing) == outcome::done, "nobody disturbs");

  auto const lose = [&](int page) { page == 1 && redis.lose("report"); };
  expect(write_report(client, 3, lose) == outcome::stopped, "the lock is lost in the middle");

  redis.take("report");
  expect(write_report(client, 3, nothing) == outcome::busy, "somebody else has it");
  redis.advance(31s);  // nothing sleeps: that lease is over
  expect(write_report(client, 3, nothing) == outcome::done, "it is free again");
  redis.deny("evalsha");
  expect(write_report(client, 3, nothing) == outcome::refused, "a right is missing");
  // [/test]
}

void test_time() {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  // [time]
  auto renewed = client.get_lock("renewed").acquire();             // by the watchdog, every 10 s
  auto fixed = client.get_lock("fixed").acquire({.lease = 1min});  // ends by itself
  for (int i = 0; i < 7; ++i) redis.advance(9s);                   // in steps below the lease: it is renewed
  expect(renewed.held() && !fixed.held(), "63 s later");
  redis.advance(1h);  // as if the machine had slept: no watchdog helps
  expect(!renewed.held() && redis.holders("renewed").empty(), "an hour later");
  // [/time]
}

void test_callback() {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  // [callback]
  auto hold = client.get_lock("job").acquire();
  std::promise<void> told;
  hold.on_lost([&] { told.set_value(); });
  redis.restart(false);  // it comes back without its data
  // Callbacks run on a thread of the client: wait for them, with a limit.
  expect(told.get_future().wait_for(10s) == std::future_status::ready, "on_lost after a restart");
  // [/callback]
}

void test_network() {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  // [network]
  auto hold = client.get_lock("job").acquire();
  redis.cut();  // every connection breaks; the client comes back by itself
  expect(hold.held() && client.get_lock("job").is_locked(), "a broken connection loses nothing");
  redis.freeze();  // from here on no answer
  redis.advance(20s);
  expect(hold.held(), "renewals are late, and the lease still runs");
  redis.advance(10s);
  expect(!hold.held(), "nobody trusts a lease that nobody renewed");
  redis.thaw();
  // [/network]
}

void test_what_was_sent() {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  // [commands]
  auto const hold = client.get_lock("job").acquire();
  auto const holders = redis.holders("job");
  expect(holders.size() == 1 && holders[0].client_id == client.id(), "we hold it");
  for (auto const& line : redis.commands()) std::cout << "        " << line.substr(0, 60) << "\n";
  // [/commands]
}

}  // namespace

int main() {
  try {
    test_report();
    test_time();
    test_callback();
    test_network();
    test_what_was_sent();
  } catch (std::exception const& error) {
    std::cerr << "lock_tests: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
  return all_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
