// What a client costs, and what it says, while its server is sick for long.
#include <outside/made_peer.hpp>
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/fault_proxy.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <optional>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

config heard_by(event_log const& log) { return {.on_event = log.callback()}; }

// What the script of an acquire answers for one lock.
constexpr auto granted = "*1\r\n:-3\r\n";
constexpr int always = 1'000'000;
// Connections that a client may make in two seconds: two of three kinds at once, the rest with growing pauses.
constexpr int few = 60;

}  // namespace

TEST_CASE("a peer that ends every connection after its handshake is not stormed", "[outside][edge-18]") {
  made_peer peer([](auto const& asked) -> std::optional<std::string> {
    if (asked.name().starts_with("EVAL")) return {};
    return made_peer::usual(asked);
  });
  client ours(peer.uri());
  auto const name = fresh_name();
  CHECK(error_of([&] { return ours.get_lock(name).try_lock(2s); }));
  CHECK(peer.accepted() > 2);
  CHECK(peer.accepted() < few);
  CHECK(error_of([&] { return ours.get_lock(name).try_lock(); }));  // it has so many attempts, and no wait
}

TEST_CASE("message connections that do not last: events, few attempts, and waiters look", "[outside][edge-18]") {
  server& redis = shared_server();
  fault_proxy proxy(redis.where());
  proxy.inject("SUBSCRIBE", "-BUSY for a while\r\n", always);
  event_log log;
  client ours(proxy.uri(), heard_by(log));
  client second(redis.uri());
  auto const name = fresh_name();
  lease held = second.get_lock(name).acquire({.lease = 60s});
  CHECK_FALSE(ours.get_lock(name).try_lock(2s));
  CHECK(log.wait_for(event_type::disconnected, 3));
  CHECK(proxy.accepted() < few);
  CHECK(wait_until([&] { return ours.snapshot().messages_refused; }));
  redis.cli({"DEL", name});  // nobody is told of that
  CHECK(ours.get_lock(name).try_lock(10s));
  ours.get_lock(name).unlock();
}

TEST_CASE("what waits until a late copy cannot run has its attempts, too", "[outside][edge-19]") {
  std::atomic<bool> sick = false;
  made_peer peer([&](auto const& asked) -> std::optional<std::string> {
    if (sick && asked.begins({"CLIENT", "KILL"}) && asked.words.size() > 4) return "-BUSY a script is running\r\n";
    if (!asked.name().starts_with("EVAL")) return made_peer::usual(asked);
    if (sick) return {};
    return granted;
  });
  client ours(peer.uri());
  auto const lock = ours.get_lock("edge-19");
  auto const me = owner::make();
  REQUIRE_FALSE(error_in(lock.async_lock(me, boost::asio::use_future)));
  sick = true;
  CHECK(error_in(lock.async_unlock(me, boost::asio::use_future)) == errc::connection_lost);
  sick = false;
}

TEST_CASE("after a reconnect a hold that the server has lost is told of at once", "[outside][edge-7]") {
  server& redis = shared_server();
  fault_proxy proxy(redis.where());
  client ours(proxy.uri());
  client second(redis.uri());
  auto const name = fresh_name();
  lease held = ours.get_lock(name).acquire();
  redis.cli({"DEL", name});
  lease other = second.get_lock(name).acquire({.wait = 5s});
  REQUIRE(other.held());
  CHECK(held.held());  // nothing has told it
  stopwatch watch;
  proxy.cut();
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(watch.passed() < 8s);  // its next renewal would be later
}

TEST_CASE("a release that is refused goes on no longer than its lease", "[outside][edge-20]") {
  std::atomic<bool> sick = false;
  made_peer peer([&](auto const& asked) -> std::optional<std::string> {
    if (!asked.name().starts_with("EVAL")) return made_peer::usual(asked);
    if (!sick) return granted;
    return "-LOADING for a while\r\n";
  });
  config settings;
  settings.timeout = 300ms;
  event_log log;
  settings.on_event = log.callback();
  client ours(peer.uri(), settings);
  {
    lease held = ours.get_lock("edge-20").acquire({.lease = 1s});
    sick = true;
  }  // refused from now on
  // The event that it was given up; the first says that the server loads.
  CHECK(log.wait_for(event_type::warning, "edge-20"));
  int const tries = peer.seen({"EVALSHA"});
  error_in(ours.get_lock("other").async_try_lock(owner::make(), 2s, boost::asio::use_future));
  CHECK(ours.snapshot().in_doubt == 0);
  CHECK(tries < 40);
}

TEST_CASE("a server that loads: one event, and its words in the error", "[outside][edge-23]") {
  fault_proxy proxy(shared_server().where());
  event_log log;
  client ours(proxy.uri(), heard_by(log));
  REQUIRE(ours.get_lock(fresh_name()).try_lock());
  for (char const* name : {"EVALSHA", "EVAL"}) proxy.inject(name, "-LOADING Redis is loading\r\n", always);
  auto const failed = thrown_by([&] { return ours.get_lock(fresh_name()).try_lock(500ms); });
  CHECK(failed.server_text() == "LOADING Redis is loading");
  CHECK(log.last(event_type::warning).text == "LOADING Redis is loading");
  CHECK(log.count_after(ours, event_type::warning) == 1);
}

TEST_CASE("a server in protected mode: its words in the error", "[outside][edge-23]") {
  fault_proxy proxy(shared_server().where());
  proxy.pretend("-DENIED Redis is running in protected mode\r\n");
  client ours(proxy.uri());
  auto const failed = thrown_by([&] { return ours.get_lock(fresh_name()).try_lock(2s); });
  CHECK(failed.server_text() == "DENIED Redis is running in protected mode");
}

TEST_CASE("one channel that is refused: others are heard", "[outside][edge-23]") {
  server& redis = shared_server();
  fault_proxy proxy(redis.where());
  event_log log;
  client ours(proxy.uri(), heard_by(log));
  client second(redis.uri());
  auto const refused = fresh_name(), heard = fresh_name();
  lease one = second.get_lock(refused).acquire({.lease = 60s});
  lease other = second.get_lock(heard).acquire({.lease = 60s});
  proxy.inject("SUBSCRIBE", "-NOPERM no permissions to access one of the channels used as arguments\r\n", 1);
  auto first = ours.get_lock(refused).async_acquire(boost::asio::use_future);
  REQUIRE(log.wait_for(event_type::subscribe_refused));
  auto next = ours.get_lock(heard).async_acquire(boost::asio::use_future);
  REQUIRE(wait_until([&] {
    return redis.cli({"PUBSUB", "CHANNELS", "*" + heard + "*"}).find(heard) != std::string::npos;
  }));
  other.release();
  CHECK(value_of(std::move(next)).held());
  redis.cli({"DEL", refused});  // nobody is told of that: it polls
  CHECK(value_of(std::move(first)).held());
}

TEST_CASE("a server that repeats the words of AUTH tells no password", "[outside][edge-29]") {
  fault_proxy proxy(shared_server().where());
  event_log log;
  config settings = heard_by(log);
  settings.username = "alice";
  settings.password = "open-sesame";
  proxy.inject("AUTH", "-ERR what is alice:open-sesame to me, says 'open-sesame'\r\n", always);
  client ours(proxy.uri(), settings);
  auto const failed = thrown_by([&] { return ours.get_lock(fresh_name()).try_lock(2s); });
  CHECK(failed.code() == errc::auth_failed);
  CHECK(std::string(failed.what()).find("sesame") == std::string::npos);
  CHECK(failed.server_text().find("what is alice:***") != std::string::npos);
  log.catch_up(ours);
  CHECK(log.words().find("sesame") == std::string::npos);
}

TEST_CASE("on a Unix socket only the process is told to kill that had the connection", "[outside][edge-30]") {
  std::atomic<int> process = 0;
  std::atomic<bool> restarts = false;
  made_peer peer([&](auto const& asked) -> std::optional<std::string> {
    if (!asked.name().starts_with("EVAL")) return made_peer::usual(asked, "process-" + std::to_string(process));
    if (restarts.exchange(false)) {
      ++process;
      return {};
    }
    return granted;
  });
  client ours(peer.uri());
  auto const taken = [&](char const* name) {
    return error_in(ours.get_lock(name).async_lock(owner::make(), 60s, boost::asio::use_future));
  };
  auto const killed = [&] {
    return peer.seen({"CLIENT", "KILL", "ID"}) - peer.seen({"CLIENT", "KILL", "ID", "9223372036854775807"});
  };
  REQUIRE_FALSE(taken("edge-30"));
  restarts = true;
  REQUIRE_FALSE(taken("edge-30 too"));
  CHECK(peer.accepted() == 2);
  CHECK(killed() == 0);
}
