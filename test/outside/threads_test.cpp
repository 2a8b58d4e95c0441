// Threads that end, and threads that are cancelled.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

// As the kernel names it: S while it waits for something.
char state_of(::pid_t thread) {
  std::ifstream from("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string const text{std::istreambuf_iterator<char>(from), {}};
  auto const end = text.rfind(") ");
  return end == std::string::npos ? '?' : text[end + 2];
}

}  // namespace

TEST_CASE("a thread that ends while it holds by lock() is renewed no longer", "[outside][edge-6]") {
  server& redis = shared_server();
  event_log log;
  config settings;
  settings.lock_watchdog_timeout = 900ms;
  settings.on_event = log.callback();
  client ours(redis.uri(), settings);
  client second(redis.uri());
  auto const name = fresh_name(), freed = fresh_name(), lent = fresh_name();
  lease kept;
  std::optional<owner> gone;
  std::thread([&] {
    gone = owner::this_thread();
    ours.get_lock(freed).lock();
    ours.get_lock(freed).unlock();
    kept = ours.get_lock(lent).acquire({.owner = gone});
    ours.get_lock(name).lock();
  }).join();
  REQUIRE(log.wait_for(event_type::holder_thread_ended, name));
  CHECK(log.count(event_type::holder_thread_ended) == 1);
  CHECK(log.last(event_type::holder_thread_ended)->owner == gone);
  CHECK(second.get_lock(name).try_lock(patience));
  CHECK(kept.held());  // somebody has the lease
  CHECK(kept.release() == release_result::released);
}

TEST_CASE("a thread that has unlocked everything ends without a word", "[outside][edge-6]") {
  server& redis = shared_server();
  event_log log;
  config settings;
  settings.on_event = log.callback();
  auto const name = fresh_name();
  {
    client ours(redis.uri(), settings);
    std::thread([&] {
      auto const lock = ours.get_lock(name);
      lock.lock();
      CHECK(lock.try_lock());
      lock.unlock();
      lock.unlock();
      CHECK(error_of([&] { lock.unlock(); }) == errc::not_owner);
    }).join();
  }
  CHECK(log.count(event_type::holder_thread_ended) == 0);
  CHECK(log.count(event_type::left_to_lease) == 0);
}

TEST_CASE("pthread_cancel of a blocked caller acts after the call, and the client lives on", "[outside][edge-28]") {
  server redis;
  event_log log;
  config settings;
  settings.timeout = patience;
  settings.on_event = log.callback();
  client ours(redis.uri(), settings);
  auto const name = fresh_name();
  for (int i = 0; i < 20; ++i) {  // the direct lane is there
    ours.get_lock(name).lock();
    ours.get_lock(name).unlock();
  }
  std::atomic<bool> returned{false}, unwound{false};
  std::atomic<::pid_t> caller_id{0};
  redis.pause();
  int const attempts = log.count(event_type::attempt);
  std::thread caller([&] {
    struct at_the_end {
      std::atomic<bool>& done;
      ~at_the_end() { done = true; }
    } const end{unwound};
    caller_id = ::gettid();
    ours.get_lock(name).lock();
    returned = true;
    ours.get_lock(name).unlock();
    for (;;) ::pthread_testcancel();
  });
  REQUIRE(log.wait_for(event_type::attempt, attempts + 1));
  REQUIRE(wait_until([&] { return state_of(caller_id) == 'S'; }));
  REQUIRE(::pthread_cancel(caller.native_handle()) == 0);
  redis.resume();
  caller.join();
  CHECK(returned);
  CHECK(unwound);
  CHECK(ours.get_lock(name).try_lock());
  ours.get_lock(name).unlock();
}
