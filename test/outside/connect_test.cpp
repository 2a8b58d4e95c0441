// client::connect: the connections are there, and the answer is true.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/raw_redis.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;
using latchkey::test::wait_until;

namespace {

int connections(server const& redis) {
  auto const text = redis.cli({"CLIENT", "LIST"});
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));  // less redis-cli's own
}

std::string user_at(server const& redis, std::string const& rights) {
  std::vector<std::string> words{"ACL", "SETUSER", "till", "reset", "resetchannels", "on", ">s3cret"};
  std::istringstream all(rights);
  for (std::string one; all >> one;) words.push_back(one);
  REQUIRE(redis.cli(words) == "OK");
  return "redis://till:s3cret@127.0.0.1:" + std::to_string(redis.where().port);
}

}  // namespace

TEST_CASE("connect makes the three connections, and again costs no other", "[outside][edge-17]") {
  server redis(true);
  client own(redis.uri(), steady_config());
  CHECK(connections(redis) == 0);
  own.connect();
  CHECK(connections(redis) == 3);
  CHECK(own.snapshot().connected);
  own.connect(5s);
  CHECK(own.get_lock("lock").try_lock());
  CHECK(connections(redis) == 3);
  CHECK(own.snapshot().reconnects == 0);
  // Nothing was left on the server.
  CHECK(redis.cli({"KEYS", "*"}) == "lock");
  CHECK(redis.cli({"PUBSUB", "CHANNELS"}).empty());
}

TEST_CASE("async_connect likewise, on the caller's executor", "[outside][edge-17]") {
  server redis(true);
  asio::io_context io;
  client own(io, redis.uri(), steady_config());
  auto connected = own.async_connect(asio::use_future);
  asio::post(io, [&] { CHECK(error_of([&] { own.connect(); }) == errc::would_deadlock); });
  std::thread runs([&] { io.run(); });
  CHECK_NOTHROW(value_of(std::move(connected)));
  CHECK(connections(redis) == 3);
  CHECK_NOTHROW(own.connect());
  own.close();
  CHECK(error_of([&] { own.connect(); }) == errc::closed);
  runs.join();
}

TEST_CASE("connect says why the server cannot be used", "[outside][edge-17]") {
  server redis(true);
  auto const port = std::to_string(redis.where().port);
  SECTION("no route") {
    client own("redis://127.0.0.1:1", steady_config());
    stopwatch const watch;
    auto const why = thrown_by([&] { own.connect(200ms); });
    CHECK(why.code() == errc::connect_failed);
    CHECK(why.server_text().find("127.0.0.1:1: Connection refused") != std::string::npos);
    CHECK(watch.passed() >= 200ms);
    CHECK(watch.passed() < 200ms + 500ms * slowness);
  }
  SECTION("a wrong password, at once") {
    CHECK(redis.cli({"CONFIG", "SET", "requirepass", "right"}) == "OK");
    client own("redis://:wrong@127.0.0.1:" + port, steady_config());
    stopwatch const watch;
    auto const why = thrown_by([&] { own.connect(1min); });
    CHECK(why.code() == errc::auth_failed);
    CHECK(why.server_text().starts_with("WRONGPASS"));
    CHECK(watch.passed() < patience);
  }
  SECTION("a silent server") {
    client own(redis.uri(), steady_config());
    redis.pause();
    stopwatch const watch;
    CHECK(error_of([&] { own.connect(200ms); }) == errc::timeout);
    CHECK(error_of([&] { own.connect(0ms); }) == errc::timeout);
    CHECK(watch.passed() < 250ms + 1s * slowness);
    redis.resume();
    CHECK_NOTHROW(own.connect());
  }
  SECTION("a busy one, by its words") {
    client own(redis.uri(), steady_config());
    own.connect();
    CHECK(redis.cli({"CONFIG", "SET", "lua-time-limit", "10"}) == "OK");
    std::thread busy([&] { redis.cli({"EVAL", "while true do end", "0"}); });
    CHECK(wait_until([&] { return redis.cli({"PING"}).starts_with("BUSY"); }));
    auto const why = thrown_by([&] { own.connect(1s); });
    CHECK(why.code() == errc::server_error);
    CHECK(why.server_text().starts_with("BUSY"));
    CHECK(redis.cli({"SCRIPT", "KILL"}) == "OK");
    busy.join();
    CHECK_NOTHROW(own.connect());
  }
  SECTION("a user who may run no script") {
    client own(user_at(redis, "+ping +client +role +script +subscribe +unsubscribe"), steady_config());
    auto const why = thrown_by([&] { own.connect(); });
    CHECK(why.code() == errc::server_error);
    CHECK(why.server_text().starts_with("NOPERM"));
  }
}

TEST_CASE("connect tells the rights that are missing by events", "[outside][edge-17]") {
  server redis(true);
  auto const all = std::string("+evalsha +eval +ping +subscribe +unsubscribe +role +script +client ");
  struct lack {
    char const* what;
    event_type told;
  };
  for (auto const& [what, told] :
       {lack{"-client|kill", event_type::kill_refused}, lack{"-client|list", event_type::lane_unchecked},
        lack{"-subscribe", event_type::subscribe_refused}}) {
    INFO(what);
    std::string rights = all + "&redisson_lock__channel:app* ~app*";
    if (std::string(what) == "-subscribe") rights += " -subscribe";
    if (std::string(what).starts_with("-client"))
      rights = "+evalsha +eval +ping +subscribe +unsubscribe +role +script +client|info +client|setname " +
               std::string(std::string(what) == "-client|kill" ? "+client|list" : "+client|kill") + " &app* ~app*";
    event_log log;
    client own(user_at(redis, rights), steady_config(log));
    CHECK_NOTHROW(own.connect());
    CHECK(log.count_after(own, told) == 1);
    for (auto const other : {event_type::kill_refused, event_type::lane_unchecked, event_type::subscribe_refused})
      if (other != told) CHECK(log.count(other) == 0);
  }
  // Of a user who may do everything but with other names nothing is missing.
  event_log log;
  client own(user_at(redis, all + "&app* ~app*"), steady_config(log));
  CHECK_NOTHROW(own.connect());
  CHECK(log.count_after(own, event_type::subscribe_refused) == 0);
  CHECK(log.refusals() == 0);
}

TEST_CASE("a connect that is cancelled, closed, or asked of a forked client ends", "[outside][edge-17]") {
  server redis(true);
  client own(redis.uri(), steady_config());
  redis.pause();
  asio::cancellation_signal stop;
  auto given_up = own.async_connect(asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  stop.emit(asio::cancellation_type::terminal);
  CHECK(error_in(std::move(given_up)) == asio::error::operation_aborted);
  auto waits = own.async_connect(asio::use_future);
  redis.resume();
  CHECK_NOTHROW(value_of(std::move(waits)));
  pid_t const child = ::fork();
  if (child == 0) ::_exit(error_of([&] { own.connect(); }) == errc::closed ? 0 : 1);
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  redis.pause();
  auto closed = own.async_connect(asio::use_future);
  own.close();
  CHECK(error_in(std::move(closed)) == errc::closed);
  CHECK(error_in(own.async_connect(asio::use_future)) == errc::closed);
  redis.resume();
}

TEST_CASE("connect waits for a server that comes later", "[outside][edge-17]") {
  server redis(true);
  redis.kill();
  event_log log;
  client own(redis.uri(), steady_config(log));
  auto connected = own.async_connect(asio::use_future);
  CHECK(log.wait_for(event_type::connect_failed));
  redis.start();
  CHECK_NOTHROW(value_of(std::move(connected)));
  CHECK(own.get_lock("lock").try_lock());
}
