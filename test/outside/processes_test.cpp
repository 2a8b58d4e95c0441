// What a client's process shares with others: descriptors, and threads of name look-ups.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/host_names.hpp>
#include <support/patience.hpp>
#include <support/raw_redis.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

std::set<std::string> said_by(std::string const& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
  ::pclose(pipe);
  std::set<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.insert(line);
  return lines;
}

// What a program started by this process has open beside its standard streams, as /proc shows it.
std::set<std::string> inherited() {
  return said_by("for fd in $(ls /proc/self/fd); do [ $fd -le 2 ] || readlink /proc/$$/fd/$fd; done");
}

std::vector<std::string> open_in(std::string const& process) {
  std::vector<std::string> all;
  for (auto const& one : said_by("ls -l /proc/" + process + "/fd 2>/dev/null")) all.push_back(one);
  return all;
}

std::set<std::string> child_servers() {
  return said_by(
      "for p in $(ls /proc | grep '^[0-9]*$'); do grep -q '^Name:.redis-server' /proc/$p/status 2>/dev/null "
      "&& grep -q '^PPid:." +
      std::to_string(::getpid()) + "$' /proc/$p/status && echo $p; done; true");
}

}  // namespace

TEST_CASE("a program that is started inherits no descriptor of a client's", "[outside][edge-27]") {
  server redis(true);
  auto const before = inherited();
  auto const name = fresh_name();
  client holder(redis.uri(), steady_config());
  lease held = holder.get_fair_lock(name).acquire();

  client threaded(redis.uri(), steady_config());
  client by_name("redis://localhost:" + std::to_string(redis.where().port), steady_config());
  client by_socket("unix://" + redis.socket(), steady_config());
  asio::io_context io;
  client on_callers(io, redis.uri(), steady_config());
  auto theirs = on_callers.get_fair_lock(name).async_lock(on_callers.new_owner(), asio::use_future);
  std::thread runs([&] { io.run(); });
  std::vector<std::future<bool>> waiters;
  for (client* one : {&threaded, &by_name, &by_socket}) {
    CHECK(one->get_lock(fresh_name()).try_lock());  // by the direct lane
    waiters.push_back(std::async(std::launch::async, [one, name] { return one->get_fair_lock(name).try_lock(1min); }));
  }
  CHECK(wait_until([&] { return redis.cli({"LLEN", "redisson_lock_queue:{" + name + "}"}) == "4"; }));
  CHECK(wait_until([&] { return redis.cli({"PUBSUB", "CHANNELS"}).find(by_socket.id()) != std::string::npos; }));

  auto after = inherited();
  for (auto const& known : before) after.erase(known);
  CHECK(after == std::set<std::string>());

  for (client* one : {&threaded, &by_name, &by_socket, &on_callers}) one->close();
  for (auto& one : waiters) CHECK_THROWS_AS(one.get(), lock_error);
  CHECK_THROWS(theirs.get());
  runs.join();
}

TEST_CASE("the server of embedded: inherits no descriptor of the program's", "[outside][edge-27]") {
  // Without MFD_CLOEXEC.
  descriptor const marked(::memfd_create("latchkey-inherited", 0));
  REQUIRE(marked);
  auto const before = child_servers();
  client with_server("embedded:");
  lease held = with_server.get_lock("name").acquire();
  int looked_at = 0;
  for (auto const& process : child_servers()) {
    if (before.contains(process)) continue;
    ++looked_at;
    for (auto const& line : open_in(process)) CHECK(line.find("latchkey-inherited") == std::string::npos);
  }
  CHECK(looked_at == 1);
}

TEST_CASE("a resolver that hangs is asked once, however many attempts", "[outside][edge-24]") {
  server redis(true);
  host_names names;
  names.hang("hanging.test");
  event_log log;
  config settings = steady_config(log);
  settings.connect_timeout = 100ms;
  settings.retry_delay = 20ms;
  settings.retry_attempts = 1'000;
  client own("redis://hanging.test:" + std::to_string(redis.where().port), settings);
  auto waiter = std::async(std::launch::async, [&] { own.get_lock("lock").lock(); });
  REQUIRE(log.wait_for(event_type::connect_failed, 5));
  CHECK(host_names::asked_in_vain() == 1);
  // The late answer serves the attempt that is under way then; else the next one asks anew.
  names.set("hanging.test", {"127.0.0.1"});
  CHECK_NOTHROW(waiter.get());
  CHECK(redis.exists("lock"));
}

// Threads that end, and threads that are cancelled.

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
  client ours(redis.uri(), {.lock_watchdog_timeout = 2s * slowness, .on_event = log.callback()});
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
  CHECK(log.count_after(ours, event_type::holder_thread_ended) == 1);
  CHECK(log.last(event_type::holder_thread_ended).owner == gone);
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
  client ours(redis.uri(), {.timeout = patience, .on_event = log.callback()});
  auto const name = fresh_name();
  for (int i = 0; i < 20; ++i) {  // the direct lane is there
    ours.get_lock(name).lock();
    ours.get_lock(name).unlock();
  }
  std::atomic<bool> returned{false}, unwound{false};
  std::atomic<::pid_t> caller_id{0};
  redis.pause();
  int const attempts = log.count_after(ours, event_type::attempt);
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

// What a crowd of holds and waiters costs the process that has them, and what another name of the same client feels of
// it.

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

config quiet() { return {.busy_poll = 0us}; }

// The middle one of so many questions for a name, of each of two clients by turns: whatever else the machine does
// concerns both.
std::array<std::chrono::nanoseconds, 2> usual_answers(client& first, client& second) {
  std::array<latchkey::distributed_lock, 2> const locks{first.get_lock(fresh_name()), second.get_lock(fresh_name())};
  std::array<std::vector<std::chrono::nanoseconds>, 2> took;
  for (int i = 0; i < 201; ++i) {
    for (std::size_t of = 0; of < 2; ++of) {
      auto const began = test::clock::now();
      (void)locks[of].is_locked();
      took[of].push_back(test::clock::now() - began);
    }
    std::this_thread::sleep_for(5ms);
  }
  for (auto& each : took) std::nth_element(each.begin(), each.begin() + 100, each.end());
  return {took[0][100], took[1][100]};
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
  auto const other = crowd.get_lock(fresh_name()).acquire();
  auto const lock = crowd.get_fair_lock(name);
  for (int i = 0; i < many; ++i) lock.async_lock(crowd.new_owner(), [](error_code) {});
  auto const in_line = [&] {
    return redis.cli({"LLEN", "redisson_lock_queue:{" + name + "}"}) == std::to_string(many);
  };
  REQUIRE(test::wait_until([&] { return in_line() && crowd.snapshot().subscriptions == many; }, 4 * test::patience));
  REQUIRE(test::wait_until([&] { return crowd.snapshot().in_doubt == 0; }));
  auto const tries_are_over = [&] {  // those that follow the subscriptions
    auto const so_far = crowd.snapshot().scripts;
    std::this_thread::sleep_for(500ms);
    return crowd.snapshot().scripts - so_far <= many / 100;
  };
  REQUIRE(test::wait_until(tries_are_over, 4 * test::patience));
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
  auto const [idle, busy] = usual_answers(holder, crowd);
  INFO("a question: " << idle.count() << " ns by another client, " << busy.count() << " ns");
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
  CHECK(wakes < many / 16 * test::slowness);
  CHECK(own.snapshot().held == many);
  CHECK(own.snapshot().renewals > many);
  own.close();
}
