// How long a call takes that has a wait, whatever the server does.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/fault_proxy.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

namespace asio = boost::asio;

constexpr milliseconds wait_time = 100ms;
// The machine may be loaded. One answer is awaited for 3 s: whoever waits for that is far beyond.
constexpr milliseconds most = 1'500ms;
// The same where one answer is awaited for longer.
config patient() { return {.timeout = 20s}; }
constexpr milliseconds most_of_the_patient = 8s;

// One way of taking something, with a wait; throws what it ends with.
struct way {
  std::string name;
  std::function<bool()> take;
};

template <class Lock>
void add_lock(std::vector<way>& all, std::string const& kind, Lock const& lock) {
  all.push_back({kind, [lock] { return lock.try_lock(wait_time); }});
  all.push_back({kind + ", a lease", [lock] { return bool(lock.acquire({.wait = wait_time})); }});
  all.push_back({kind + ", async", [lock] {
                   auto done = lock.async_try_lock(owner::make(), wait_time, asio::use_future);
                   return test::value_of(std::move(done));
                 }});
}

// All kinds, on names that nobody holds. The server is asked for each once, so that all scripts and connections are
// there.
std::vector<way> all_ways(client& own) {
  std::vector<way> all;
  auto const rw = own.get_read_write_lock(fresh_name());
  std::vector<std::pair<std::string, distributed_lock>> const locks = {
      {"lock", own.get_lock(fresh_name())},
      {"non-reentrant", own.get_non_reentrant_lock(fresh_name())},
      {"fair", own.get_fair_lock(fresh_name())},
      {"spin", own.get_spin_lock(fresh_name())},
      {"fenced", own.get_fenced_lock(fresh_name())},
      {"plain", own.get_plain_lock(fresh_name())},
      {"read", rw.read_lock()},
      {"write", rw.write_lock()},
      {"multi", own.get_multi_lock({own.get_lock(fresh_name()), own.get_fair_lock(fresh_name())})},
      {"red", own.get_red_lock({own.get_lock(fresh_name()), own.get_lock(fresh_name()), own.get_lock(fresh_name())})},
  };
  for (auto const& [kind, lock] : locks) {
    REQUIRE(lock.try_lock());
    lock.unlock();
    add_lock(all, kind, lock);
  }
  auto const semaphore = own.get_semaphore(fresh_name());
  semaphore.add_permits(1'000);
  REQUIRE(semaphore.try_acquire());
  all.push_back({"semaphore", [semaphore] { return semaphore.try_acquire(1, wait_time); }});
  auto const permits = own.get_permit_semaphore(fresh_name());
  permits.add_permits(1'000);
  REQUIRE(permits.try_acquire());
  all.push_back({"permit", [permits] { return permits.try_acquire(wait_time).has_value(); }});
  all.push_back({"permit, shown", [permits] { return bool(permits.acquire_permit({.wait = wait_time})); }});
  auto const latch = own.get_count_down_latch(fresh_name());
  REQUIRE(latch.wait_for(wait_time));
  all.push_back({"latch", [latch] { return latch.wait_for(wait_time); }});
  return all;
}

// As `error_of`, for futures too.
error_code error_in(std::function<bool()> const& take, std::string& words) {
  try {
    static_cast<void>(take());
  } catch (boost::system::system_error const& error) {
    words = error.what();
    return error.code();
  }
  return {};
}

}  // namespace

TEST_CASE("a wait bounds a call of any kind to a server that has stopped", "[outside][edge-13]") {
  server redis;
  client own(redis.uri(), patient());
  auto const ways = all_ways(own);
  REQUIRE(test::wait_until([&] { return own.snapshot().held == 0; }));
  auto const size = redis.cli({"DBSIZE"});
  redis.pause();
  for (auto const& one : ways) {
    INFO(one.name);
    test::stopwatch const watch;
    std::string words;
    auto const error = error_in(one.take, words);
    CHECK(watch.passed() < most_of_the_patient);
    CHECK((error == errc::timeout || error == errc::connect_failed || error == errc::connection_lost));
  }
  redis.resume();
  // What was on its way is given back.
  CHECK(test::wait_until([&] { return redis.cli({"DBSIZE"}) == size; }));
}

TEST_CASE("a server that has stopped is named, before any connection is given up", "[outside][edge-13]") {
  server redis;
  client ours(redis.uri());
  auto const lock = ours.get_lock(fresh_name());
  REQUIRE(lock.try_lock(2s));
  redis.pause();
  auto const failed = test::thrown_by([&] { return ours.get_lock(fresh_name()).try_lock(100ms); });
  redis.resume();
  CHECK(failed.code() == errc::timeout);
  CHECK(std::string(failed.what()).find(redis.socket()) != std::string::npos);
}

// The other hold's lease ends while nothing is answered: the waiter asks, and that may be granted behind his back.
TEST_CASE("a waiter is not told busy whose latest try a stopped server has not answered",
          "[outside][edge-9][edge-13]") {
  server redis;
  client holder(redis.uri());
  client own(redis.uri(), patient());
  own.connect();
  auto const rw = fresh_name();
  auto const joined = fresh_name();
  std::function<distributed_lock(client&)> const kinds[] = {
      [&](client& of) { return of.get_lock("lock"); },
      [&](client& of) { return of.get_fair_lock("fair"); },
      [&](client& of) { return of.get_spin_lock("spin"); },
      [&](client& of) { return of.get_plain_lock("plain"); },
      [&](client& of) { return of.get_read_write_lock(rw).write_lock(); },
      [&](client& of) {
        return of.get_multi_lock({of.get_lock(joined), of.get_lock(joined + "2")});
      },
  };
  std::vector<lease> held;
  for (auto const& kind : kinds) held.push_back(kind(holder).acquire({.lease = 3s}));
  std::vector<std::future<bool>> waiting;
  for (auto const& kind : kinds) {
    auto const before = own.snapshot().waiting;
    waiting.push_back(std::async(std::launch::async, [lock = kind(own)] { return lock.try_lock(5s); }));
    REQUIRE(test::wait_until([&] { return own.snapshot().waiting > before; }));
  }
  redis.pause();
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    INFO(kinds[i](own).name());
    CHECK(test::error_in(std::move(waiting[i])) == errc::timeout);
  }
  redis.resume();
  CHECK(test::wait_until([&] { return redis.cli({"DBSIZE"}) == "0"; }));
}

TEST_CASE("a wait bounds a call of any kind to a server that is busy for long", "[outside][edge-13][edge-15]") {
  server redis;
  for (std::string const words :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'."}) {
    test::fault_proxy proxy(redis.where());
    client own(proxy.uri(), patient());
    auto const ways = all_ways(own);
    for (auto const* name : {"EVALSHA", "EVAL"}) proxy.inject(name, "-" + words + "\r\n", 1'000'000);
    for (auto const& one : ways) {
      INFO(one.name << ", " << words);
      test::stopwatch const watch;
      std::string said;
      auto const error = error_in(one.take, said);
      CHECK(watch.passed() < most_of_the_patient);
      CHECK((error == errc::timeout || error == errc::connect_failed || error == errc::connection_lost));
      // A future throws the code alone, and of a majority one member may have been too late to be told.
      bool const whole = !one.name.ends_with("async") && !one.name.starts_with("red");
      if (whole) CHECK(said.find(words) != std::string::npos);
    }
  }
}

TEST_CASE("a caller who sleeps in the socket wakes up when a stop is asked for", "[outside][edge-13]") {
  server redis;
  client own(redis.uri(), patient());
  auto const lock = own.get_lock(fresh_name());
  for (int i = 0; i < 10; ++i) CHECK(lock.acquire().release() == release_result::released);
  redis.pause();
  std::stop_source stop;
  auto const before = own.snapshot().commands;
  auto waiting = std::async(std::launch::async, [&] { return bool(lock.acquire({}, stop.get_token())); });
  REQUIRE(test::wait_until([&] { return own.snapshot().commands > before; }));
  test::stopwatch const watch;
  stop.request_stop();
  CHECK_FALSE(test::value_of(std::move(waiting)));
  CHECK(watch.passed() < most_of_the_patient);
  redis.resume();
  CHECK(test::wait_until([&] { return !redis.exists(lock.name()); }));
}

TEST_CASE("a call to a server that is not there says so, with its address", "[outside][edge-15]") {
  std::string where;
  {
    server redis(true);
    where = redis.uri();
  }
  client own(where);
  auto const lock = own.get_lock("lock");
  for (milliseconds const wait : {10ms, 300ms}) {
    test::stopwatch const watch;
    auto const error = test::thrown_by([&] { return lock.try_lock(wait); });
    CHECK(error.code() == errc::connect_failed);
    CHECK_FALSE(may_still_be_held(error.code()));
    INFO(where << " | " << error.what());
    CHECK(where.find(error.server_text().substr(0, error.server_text().find(": "))) != std::string::npos);
    CHECK(watch.passed() < most);
  }
}

TEST_CASE("a release on a server that is gone ends in time and goes on behind", "[outside][edge-15]") {
  server redis;
  test::fault_proxy proxy(redis.where());
  client own(proxy.uri(), {.close_timeout = 300ms});
  auto const leased = own.get_lock(fresh_name());
  auto const plain = own.get_lock(fresh_name());
  auto const both = own.get_multi_lock({own.get_lock(fresh_name()), own.get_lock(fresh_name())});
  auto held = leased.acquire();
  auto two = both.acquire();
  plain.lock();
  bool const silent = GENERATE(false, true);
  if (silent) {
    proxy.silent(true);
  } else {
    proxy.refuse(true);
    proxy.cut();
  }
  test::stopwatch watch;
  CHECK(held.release() == release_result::unknown);
  CHECK(watch.passed() < most);
  watch = {};
  CHECK(two.release() == release_result::unknown);
  CHECK(watch.passed() < most);
  watch = {};
  auto const error = test::error_of([&] { return plain.unlock(), true; });
  CHECK(may_still_be_held(error));
  CHECK(watch.passed() < most);
  CHECK(redis.exists(leased.name()));
  if (silent)
    proxy.silent(false);
  else
    proxy.refuse(false);
  CHECK(test::wait_until([&] { return redis.cli({"DBSIZE"}) == "0"; }));
}

TEST_CASE("an error tells whether a hold may be left", "[outside][edge-9]") {
  server redis;
  test::fault_proxy proxy(redis.where());
  config settings;
  settings.retry_delay = 20ms;
  settings.retry_attempts = 2;
  auto own = std::make_unique<client>(proxy.uri(), settings);
  auto const lock = own->get_lock(fresh_name());
  REQUIRE(lock.try_lock());
  lock.unlock();
  proxy.swallow_replies(true);
  auto asked = lock.async_try_lock(owner::make(), asio::use_future);
  REQUIRE(test::wait_until([&] { return redis.exists(lock.name()); }));
  std::string words;
  error_code error;
  SECTION("the server takes the user no more") {
    proxy.pretend("-NOAUTH Authentication required.\r\n");
    proxy.cut();
    error = error_in([&] { return test::value_of(std::move(asked)); }, words);
    CHECK(error == errc::connection_lost);
  }
  SECTION("no connection can be made any more") {
    proxy.refuse(true);
    proxy.cut();
    error = error_in([&] { return test::value_of(std::move(asked)); }, words);
    CHECK(error == errc::connection_lost);
  }
  SECTION("the second copy is refused") {
    for (auto const* name : {"EVALSHA", "EVAL"})
      proxy.inject(name, "-NOPERM this user has no permissions to run the command\r\n", 1'000'000);
    proxy.cut();
    proxy.swallow_replies(false);
    error = error_in([&] { return test::value_of(std::move(asked)); }, words);
    CHECK(error == errc::connection_lost);
  }
  SECTION("the client is closed") {
    own->close();
    error = error_in([&] { return test::value_of(std::move(asked)); }, words);
    CHECK(error == errc::closed);
  }
  CHECK(may_still_be_held(error));
}

TEST_CASE("an answer that comes after its lease has ended is a late answer", "[outside][edge-9]") {
  server redis;
  test::fault_proxy proxy(redis.where());
  client own(proxy.uri(), patient());
  auto const lock = own.get_lock(fresh_name());
  REQUIRE(lock.try_lock());
  lock.unlock();
  // Who has time left tries again.
  bool const waits = GENERATE(false, true);
  proxy.hold(test::fault_proxy::way::replies, true);
  auto asked = lock.async_try_lock(owner::make(), waits ? 30s : 0s, 1s * test::slowness, asio::use_future);
  REQUIRE(test::wait_until([&] { return redis.exists(lock.name()); }));
  REQUIRE(test::wait_until([&] { return !redis.exists(lock.name()); }));
  proxy.hold(test::fault_proxy::way::replies, false);
  std::string words;
  if (waits) {
    CHECK(test::value_of(std::move(asked)));
    return;
  }
  auto const error = error_in([&] { return test::value_of(std::move(asked)); }, words);
  CHECK(error == errc::timeout);
  CHECK(may_still_be_held(error));
}

TEST_CASE("an extension that is not answered says that its hold is over, whoever runs the executor", "[outside]") {
  server redis;
  test::fault_proxy proxy(redis.where());
  asio::io_context io;
  auto const work = asio::make_work_guard(io);
  std::promise<void> goes_on;
  std::jthread const runs([&] { io.run(); });
  {
    milliseconds const once = 500ms * test::slowness;
    client own(io, proxy.uri(), {.connect_timeout = once, .timeout = once, .retry_attempts = 1});
    auto held = own.get_lock(fresh_name()).acquire({.lease = 1s * test::slowness});
    bool const stands_still = GENERATE(false, true);
    if (stands_still) asio::post(io, [&] { goes_on.get_future().wait(); });  // its attempts outlast the lease
    proxy.hold(test::fault_proxy::way::replies, true);
    CHECK_FALSE(held.extend(20s * test::slowness));
    CHECK_FALSE(held.held());
    proxy.hold(test::fault_proxy::way::replies, false);
    goes_on.set_value();
  }
  io.stop();
}

TEST_CASE("a timed try of a standard guard is false where the server does not answer", "[outside][edge-14]") {
  server redis;
  test::event_log log;
  client own(redis.uri(), {.on_event = log.callback()});
  auto const lock = own.get_lock(fresh_name());
  auto mutex = lock.as_mutex();
  REQUIRE(mutex.try_lock_for(1s));
  mutex.unlock();
  redis.pause();
  {
    std::unique_lock<std_mutex> const guard(mutex, 50ms);
    CHECK_FALSE(guard.owns_lock());
  }
  CHECK_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + 50ms));
  REQUIRE(log.wait_for(event_type::warning, lock.name(), 2));
  CHECK(may_still_be_held(log.last(event_type::warning).error));
  // Who asks the lock itself is told by an exception, as ever.
  CHECK(test::error_of([&] { return lock.try_lock(50ms); }) != error_code{});
  redis.resume();
}

TEST_CASE("a wait until a time that does not fit the clock is for ever", "[outside][edge-16]") {
  using namespace std::chrono;
  server& redis = shared_server();
  client own(redis.uri());
  client other(redis.uri());
  auto const lock = own.get_lock(fresh_name());
  REQUIRE(lock.try_lock_until(sys_days{9999y / 12 / 31}));
  lock.unlock();
  REQUIRE(lock.try_lock_until(steady_clock::time_point::max()));
  lock.unlock();
  auto mutex = lock.as_mutex();
  REQUIRE(mutex.try_lock_until(sys_days{9999y / 12 / 31}));
  mutex.unlock();
  auto held = other.get_lock(lock.name()).acquire();
  CHECK_FALSE(lock.try_lock_until(sys_days{1y / 1 / 1}));
  CHECK_FALSE(lock.try_lock_until(system_clock::now() + 5ms));
  auto waiting = std::async(std::launch::async, [&] {
    bool const got = lock.try_lock_until(sys_days{9999y / 12 / 31});
    if (got) lock.unlock();
    return got;
  });
  REQUIRE(test::wait_until([&] { return own.snapshot().waiting == 1; }));
  static_cast<void>(held.release());
  CHECK(test::value_of(std::move(waiting)));
}

TEST_CASE("a single try behind a waiter whom the server refuses is refused, too", "[outside][edge-22]") {
  server redis;
  client own(redis.uri());
  client second(redis.uri());
  auto const lock = own.get_lock(fresh_name());
  REQUIRE(redis.cli({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return bool(lock.acquire({}, stop.get_token())); });
  REQUIRE(test::wait_until([&] { return own.snapshot().waiting == 1; }));
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    auto const error = test::thrown_by([&] { return lock.try_lock(); });
    if (error.code() == errc::timeout) continue;  // on a busy machine
    ++refused;
    CHECK(error.code() == errc::server_error);
    CHECK(error.server_text().find("OOM") != std::string::npos);
  }
  CHECK(refused >= 10);
  CHECK_FALSE(redis.exists(lock.name()));
  stop.request_stop();
  CHECK_FALSE(test::value_of(std::move(waiting)));
}
