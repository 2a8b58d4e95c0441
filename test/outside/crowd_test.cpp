// What a crowd of holds and waiters costs the process that has them, and what another name of the same client feels of
// it.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
namespace asio = boost::asio;

namespace {

rusage used() {
  rusage now{};
  ::getrusage(RUSAGE_SELF, &now);
  return now;
}

std::chrono::microseconds cpu() {
  auto const now = used();
  auto const of = [](timeval const& time) { return time.tv_sec * 1s + std::chrono::microseconds(time.tv_usec); };
  return of(now.ru_utime) + of(now.ru_stime);
}

config quiet() {
  config made;
  made.busy_poll = 0us;
  return made;
}

// The middle one of so many questions for a name.
std::chrono::nanoseconds usual_answer(client& from) {
  auto const lock = from.get_lock(fresh_name());
  std::vector<std::chrono::nanoseconds> took;
  for (int i = 0; i < 201; ++i) {
    auto const began = test::clock::now();
    (void)lock.is_locked();
    took.push_back(test::clock::now() - began);
    std::this_thread::sleep_for(5ms);
  }
  std::nth_element(took.begin(), took.begin() + 100, took.end());
  return took[100];
}

}  // namespace

TEST_CASE("ten thousand fair waiters of one client cost a few per cent of a core, and no other name feels them",
          "[outside][edge-21]") {
  constexpr int many = 10'000;
  server redis;
  client holder(redis.uri(), quiet());
  client crowd(redis.uri(), quiet());
  auto const name = fresh_name();
  auto const held = holder.get_fair_lock(name).acquire({.lease = 300s});
  REQUIRE(held);
  auto const idle = usual_answer(crowd);
  auto const other = crowd.get_lock(fresh_name()).acquire();
  auto const lock = crowd.get_fair_lock(name);
  for (int i = 0; i < many; ++i) lock.async_lock(crowd.new_owner(), [](error_code) {});
  auto const in_line = [&] {
    return redis.cli({"LLEN", "redisson_lock_queue:{" + name + "}"}) == std::to_string(many);
  };
  REQUIRE(test::wait_until([&] { return in_line() && crowd.snapshot().subscriptions == many; }, 4 * test::patience));
  REQUIRE(test::wait_until([&] { return crowd.snapshot().in_doubt == 0; }));
  std::this_thread::sleep_for(1s);  // the tries that follow the subscriptions
  auto const scripts = crowd.snapshot().scripts;
  auto const lost = crowd.snapshot().reconnects;
  auto const before = cpu();
  std::this_thread::sleep_for(10s);  // each has looked, or is about to
  auto const spent = cpu() - before;
  auto const calls = crowd.snapshot().scripts - scripts;
  INFO("CPU in 10 s: " << spent.count() << " us; script calls: " << calls);
  CHECK(calls >= 100);
  CHECK(calls <= many / 5);
  CHECK(spent <= 500ms * test::slowness);
  auto const busy = usual_answer(crowd);
  INFO("a question: " << idle.count() << " ns before, " << busy.count() << " ns");
  CHECK(busy <= 2 * idle + 200us);
  CHECK(other.held());
  CHECK(crowd.snapshot().reconnects == lost);
  CHECK(in_line());
}

TEST_CASE("holds taken at different moments wake their client no more often than their renewals",
          "[outside][edge-25]") {
  constexpr int many = 4'000;
  asio::io_context io(1);
  auto settings = quiet();
  settings.lock_watchdog_timeout = 6s;
  client own(io, shared_server().uri(), settings);
  auto const me = own.new_owner();
  auto const prefix = fresh_name();
  for (int i = 0; i < many; ++i) {
    own.get_lock(prefix + std::to_string(i)).async_lock(me, [](error_code) {});
    io.run_for(500us);
  }
  io.run_for(5s);  // each was renewed
  auto const slept = used().ru_nvcsw;
  io.run_for(6s);
  auto const wakes = used().ru_nvcsw - slept;
  INFO("sleeps in 6 s: " << wakes);
  CHECK(wakes < many / 16);
  CHECK(own.snapshot().held == many);
  CHECK(own.snapshot().renewals > many);
  own.close();
}
