// Cases 1 to 15: inputs. What is wrong is refused before anything is sent, and nothing has changed.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Nothing of this client has reached the server, since it has no connection.
struct unused_client {
  private_world w;
  void check_unused() { CHECK(w.admin.clients() == 0); }
};

constexpr milliseconds biggest = milliseconds::max();

template <class Lock, class Duration>
concept lockable_with = requires(Lock lock, Duration d) {
  lock.lock(d);
};

static_assert(lockable_with<distributed_lock, std::chrono::seconds>);
static_assert(lockable_with<distributed_lock, std::chrono::microseconds>, "case 11: rounded up");
static_assert(!lockable_with<distributed_lock, int> && !lockable_with<distributed_lock, double>, "case 11: no unit");
static_assert(!std::is_default_constructible_v<owner> && !std::is_constructible_v<owner, int>, "case 12");

}  // namespace

TEST_CASE("case 1: a URI that cannot be read is bad_uri, with the position and without the password",
          "[server][case-1]") {
  std::vector<std::string> const bad{
      "",
      "localhost",
      "http://localhost",
      "redis:",
      "redis:localhost",
      "redis://",
      "redis://:6379",
      "redis://localhost:0",
      "redis://localhost:65536",
      "redis://localhost:http",
      "redis://localhost:",
      "redis://local%zzhost",
      "redis://user:s3cret%4@localhost",
      "redis://::1:6379",
      "redis://[::1",
      "redis://[::1]6379",
      "redis://localhost/-1",
      "redis://localhost/x",
      "redis://localhost/99999999999",
      "redis://user:s3cret@more@localhost",
      "redis://user:s3cret:more@localhost",
      "redis://user:s3cret/more@localhost",
      "unix://",
      "unix://relative.sock",
      "unix:///run/redis.sock?db=x",
      "unix:///run/redis.sock?user=s3cret",
      "embedded:more",
      "redis-cluster://user:s3cret@localhost/1",
      "redis-sentinel://user:s3cret@localhost:1",
      std::string("redis://local\0host", 18),
  };
  for (auto const& uri : bad) {
    INFO("URI: " << uri);
    auto const error = thrown_by([&] { return client(uri); });
    CHECK(error.code() == errc::bad_uri);
    std::string const words = error.what() + error.server_text();
    CHECK(words.find("s3cret") == std::string::npos);
    CHECK(words.find_first_of("0123456789") != std::string::npos);
  }
}

TEST_CASE("case 2: a wait that ends before there was a connection says why there was none", "[server][case-2]") {
  client closed("redis://127.0.0.1:" + std::to_string(free_port()), steady_config());
  auto const error = thrown_by([&] { return closed.get_lock("x").try_lock(300ms * slowness); });
  CHECK(error.code() == errc::connect_failed);
  CHECK(std::string(error.what()).find("Connection refused") != std::string::npos);
}

TEST_CASE("case 2: a host without address and a closed port are connect_failed", "[server][case-2]") {
  auto settings = quick_config();
  settings.retry_attempts = 1;
  event_log log;
  settings.on_event = log.callback();
  client nowhere("redis://no-such-host.invalid", settings);
  CHECK(error_of([&] { return nowhere.get_lock("x").try_lock(); }) == errc::connect_failed);
  client closed("redis://127.0.0.1:" + std::to_string(free_port()), settings);
  CHECK(error_of([&] { return closed.get_lock("x").try_lock(); }) == errc::connect_failed);
  client absent("unix:///nonexistent/redis.sock", settings);
  CHECK(error_of([&] { return absent.get_lock("x").try_lock(); }) == errc::connect_failed);
  CHECK(log.wait_for(event_type::connect_failed, 3));
}

TEST_CASE("case 2: a peer that is not Redis is protocol_error", "[server][case-2]") {
  auto const answer = GENERATE(as<std::string>(), "HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03\x02\x02\x28",
                               "SSH-2.0-OpenSSH_9\r\n");
  fault_proxy proxy(common_server().where(), true);
  proxy.pretend(answer);
  auto settings = quick_config();
  settings.retry_attempts = 1;
  client own(proxy.uri(), settings);
  CHECK(error_of([&] { return own.get_lock("x").try_lock(); }) == errc::protocol_error);
}

TEST_CASE("case 2: a peer that accepts and says nothing is given up in time", "[server][case-2]") {
  fault_proxy proxy(common_server().where(), true);
  proxy.silent(true);
  auto settings = quick_config();
  settings.connect_timeout = 200ms;
  settings.retry_attempts = 1;
  client own(proxy.uri(), settings);
  auto const error = error_of([&] { return own.get_lock("x").try_lock(); });
  CHECK((error == errc::connect_failed || error == errc::timeout));
  CHECK(error_of([&] { return own.get_lock("x").try_lock(300ms); }) != error_code{});
  CHECK(proxy.accepted() > 0);
}

TEST_CASE("case 3: an empty name is bad_argument", "[server][case-3]") {
  unused_client u;
  CHECK(error_of([&] { return u.w.own.get_lock(""); }) == errc::bad_argument);
  u.check_unused();
}

TEST_CASE("case 4: any bytes make a name and pass through unchanged", "[server][case-4]") {
  common_world w;
  std::vector<std::string> const names{
      std::string("nul\0byte", 8), "line\r\nbreak", " blanks in it ",        "\xff\xfe\x80",
      "schl\xc3\xbcssel",          "\xc3",          "quote\"and'back\\slash"};
  for (auto const& tail : names) {
    auto const name = new_name() + tail;
    auto const lock = w.own.get_lock(name);
    lock.lock();
    CHECK(lock.name() == name);
    CHECK(w.admin.hash(name).count(w.field(owner::this_thread())) == 1);
    lock.unlock();
    CHECK(w.admin.integer("EXISTS", name) == 0);
  }
  CHECK(w.own.get_lock("a") != w.own.get_lock(std::string("a\0", 2)));
}

TEST_CASE("case 5: a name of 64 KiB works and a longer one is bad_argument", "[server][case-5]") {
  common_world w;
  auto const longest = w.own.get_lock(new_name() + std::string(65'536 - 16, 'n'));
  longest.lock();
  longest.unlock();
  unused_client u;
  CHECK(error_of([&] { return u.w.own.get_lock(std::string(65'537, 'n')); }) == errc::bad_argument);
  u.check_unused();
}

TEST_CASE("cases 7, 8 and 11: a lease that is no lease is bad_argument and nothing is sent",
          "[server][case-7][case-8][case-11]") {
  unused_client u;
  auto const& lock = u.w.lock;
  // The server adds its clock to the lease: what does not fit there would leave a lock without end.
  std::chrono::duration<double> const no_number(std::numeric_limits<double>::quiet_NaN());
  auto const lease =
      GENERATE_COPY(as<timespan>(), no_number, 0ms, -0.5ms, -1ms, milliseconds::min(), biggest, biggest - 1ms,
                    biggest - 1'700'000'000'000ms, milliseconds(std::numeric_limits<long>::max() / 2));
  CHECK(error_of([&] { lock.lock(lease); }) == errc::bad_argument);
  CHECK(error_of([&] { return lock.try_lock(1s, lease); }) == errc::bad_argument);
  CHECK(error_of([&] { return lock.acquire({.lease = lease}); }) == errc::bad_argument);
  CHECK(error_in(lock.async_lock(owner::make(), lease, asio::use_future)) == errc::bad_argument);
  u.check_unused();
}

TEST_CASE("case 8: a lease of ten years is granted as it is", "[server][case-8]") {
  common_world w;
  constexpr auto ten_years = milliseconds(std::chrono::hours(24 * 3650));
  w.lock.lock(ten_years);
  CHECK(w.lock.remaining_time_to_live().value() > ten_years - 1h);
  w.lock.unlock();
}

TEST_CASE("case 9: a grant whose answer comes after its lease is not believed and is given back", "[server][case-9]") {
  fault_proxy proxy(common_server().where());
  event_log log;
  client own(proxy.uri(), steady_config(log));
  auto const lock = own.get_lock(new_name());
  lock.lock();
  lock.unlock();
  auto admin = common_server().admin();
  proxy.hold(fault_proxy::way::replies, true);
  auto const calls = admin.script_calls();
  auto future = lock.async_acquire({.lease = 60ms}, asio::use_future);
  REQUIRE(wait_until([&] { return admin.script_calls() > calls || admin.integer("EXISTS", lock.name()) == 1; }));
  REQUIRE(wait_until([&] { return admin.integer("EXISTS", lock.name()) == 0; }));
  auto const answered = clock::now();
  proxy.hold(fault_proxy::way::replies, false);
  try {
    lease const held = value_of(std::move(future));
    // Then it was granted anew.
    CHECK((!held || held.valid_until() > answered));
  } catch (boost::system::system_error const& error) {
    CHECK(error.code() == errc::timeout);  // it may be held until it was given back
  }
  CHECK(log.count_after(own, event_type::abandoned) == 1);
  CHECK(wait_until([&] { return admin.integer("EXISTS", lock.name()) == 0; }));
}

TEST_CASE("case 9: very short leases end, and nothing stays behind", "[server][case-9]") {
  common_world w;
  for (int i = 0; i < 20; ++i) {
    try {
      lease held = w.lock.acquire({.wait = 1s, .lease = 1ms});
      static_cast<void>(held.release());
    } catch (lock_error const& error) {  // the answer took longer than the lease
      CHECK(error.code() == errc::timeout);
    }
  }
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
  CHECK(w.own.snapshot().held == 0);
}

TEST_CASE("case 10: a wait of zero or less is one attempt, one that fits no clock is for ever", "[server][case-10]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  using steady = std::chrono::steady_clock;
  CHECK_FALSE(w.lock.try_lock(0ms));
  CHECK_FALSE(w.lock.try_lock(-1ms));
  CHECK_FALSE(w.lock.try_lock(milliseconds::min()));
  CHECK_FALSE(w.lock.try_lock_for(std::chrono::hours::min()));
  CHECK_FALSE(w.lock.acquire({.wait = milliseconds::min()}));
  auto past = std::async(std::launch::async, [&] {
    bool const held = w.lock.try_lock_until(steady::time_point::min());
    if (held) w.lock.unlock();
    return held;
  });
  CHECK(past.wait_for(patience) == std::future_status::ready);
  std::vector<std::future<bool>> waiters;
  for (auto const wait : {biggest, biggest - 1ms, milliseconds(std::chrono::hours(24 * 365'000))})
    waiters.push_back(std::async(std::launch::async, [&, wait] {
      bool const held = w.lock.try_lock(wait);
      if (held) w.lock.unlock();
      return held;
    }));
  waiters.push_back(std::async(std::launch::async, [&] {
    if (!w.lock.try_lock_for(std::chrono::hours::max())) return false;
    bool const again = w.lock.try_lock_until(steady::time_point::max());
    if (again) w.lock.unlock();
    w.lock.unlock();
    return again;
  }));
  CHECK(wait_until([&] { return w.own.snapshot().waiting >= 4; }));
  theirs.unlock();
  for (auto& waiter : waiters) CHECK(waiter.get());
  CHECK_FALSE(past.get());
}

TEST_CASE("case 12: the id of a client is its own, and one owner in two clients is two owners", "[server][case-12]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  CHECK_FALSE(w.own.id().empty());
  CHECK(w.own.id() != other.id());
  w.lock.lock();
  CHECK_FALSE(other.get_lock(w.name).try_lock());
  CHECK_FALSE(other.get_lock(w.name).is_held_by_current_thread());
  w.lock.unlock();
}

TEST_CASE("case 15: settings out of range are bad_argument when the client is made", "[server][case-15]") {
  auto const refused = [](auto change) {
    config settings;
    change(settings);
    return error_of([&] { return client(common_server().uri(), settings); }) == errc::bad_argument;
  };
  CHECK(refused([](config& c) { c.lock_watchdog_timeout = 0ms; }));
  CHECK(refused([](config& c) { c.lock_watchdog_timeout = -1s; }));
  CHECK(refused([](config& c) { c.lock_watchdog_timeout = 9ms; }));
  CHECK(refused([](config& c) { c.lock_watchdog_timeout = milliseconds::max(); }));
  CHECK(refused([](config& c) { c.lock_watchdog_batch_size = 0; }));
  CHECK(refused([](config& c) { c.lock_watchdog_batch_size = 1001; }));
  CHECK(refused([](config& c) { c.connect_timeout = 0ms; }));
  CHECK(refused([](config& c) { c.timeout = 0ms; }));
  CHECK(refused([](config& c) { c.retry_attempts = -1; }));
  CHECK(refused([](config& c) { c.retry_delay = 0ms; }));
  CHECK(refused([](config& c) { c.ping_interval = -1ms; }));
  CHECK(refused([](config& c) { c.idle_connection_timeout = -1ms; }));
  CHECK(refused([](config& c) { c.client_name = "with blank"; }));
  CHECK(refused([](config& c) { c.database = -1; }));
  CHECK(refused([](config& c) { c.local_handoff.max_streak = -1; }));
  CHECK(refused([](config& c) { c.local_handoff.max_time = -1ms; }));
  CHECK(refused([](config& c) { c.local_handoff.warm_up = -1; }));
  CHECK(refused([](config& c) { c.busy_poll = -1us; }));
  CHECK(refused([](config& c) { c.close_timeout = -1ms; }));
  CHECK_FALSE(refused([](config&) {}));
}

TEST_CASE("case 15: a watchdog time below three command timeouts is warned about", "[server][case-15]") {
  event_log log;
  auto settings = steady_config(log);
  settings.lock_watchdog_timeout = settings.timeout * 3 - 1ms;
  client own(common_server().uri(), settings);
  CHECK(own.get_lock(new_name()).try_lock());
  CHECK(log.wait_for(event_type::warning));
  event_log quiet;
  settings.lock_watchdog_timeout = settings.timeout * 3;
  settings.on_event = quiet.callback();
  client fine(common_server().uri(), settings);
  CHECK(fine.get_lock(new_name()).try_lock());
  CHECK(quiet.count(event_type::warning) == 0);
}
