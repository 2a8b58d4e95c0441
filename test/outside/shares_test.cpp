// Does a client that always wants a lock leave others their share?
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <optional>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

namespace asio = boost::asio;

using getter = distributed_lock (*)(client&, std::string);

struct named_kind {
  char const* name;
  getter get;
};

constexpr named_kind kinds[] = {
    {"reentrant", [](client& c, std::string n) { return c.get_lock(std::move(n)); }},
    {"fair", [](client& c, std::string n) { return c.get_fair_lock(std::move(n)); }},
    {"fenced", [](client& c, std::string n) { return c.get_fenced_lock(std::move(n)); }},
    {"write", [](client& c, std::string n) { return c.get_read_write_lock(std::move(n)).write_lock(); }},
};

// Takes it and drops it, and takes it again in the same turn of the loop.
asio::awaitable<void> keep_taking(distributed_lock lock, std::optional<owner> me, std::atomic<bool> const& stop,
                                  std::atomic<int>& turns) {
  while (!stop) {
    acquire_options options{.wait = 1s};
    options.owner = me;
    lease const held = co_await lock.async_acquire(options, asio::use_awaitable);
    if (held) ++turns;
  }
}

}  // namespace

TEST_CASE("a loop that drops a lease and takes it again leaves a second client its turn", "[outside][edge-33]") {
  bool const same_owner = GENERATE(true, false);
  auto const kind = GENERATE(from_range(std::begin(kinds), std::end(kinds)));
  CAPTURE(kind.name, same_owner);
  server& redis = shared_server();
  asio::io_context io;
  client busy(io, redis.uri());
  client second(redis.uri());
  auto const name = fresh_name();
  std::atomic<bool> stop = false;
  std::atomic<int> turns = 0;
  auto const me = same_owner ? std::optional(busy.new_owner()) : std::nullopt;
  asio::co_spawn(io, keep_taking(kind.get(busy, name), me, stop, turns), asio::detached);
  std::thread loop([&] { io.run(); });
  // Each time it asks when the loop is well under way.
  int served = 0;
  for (int i = 0; i < 5; ++i) {
    int const seen = turns;
    CHECK(test::wait_until([&] { return turns > seen + 20; }));
    if (lease const got = kind.get(second, name).acquire({.wait = 5s})) ++served;
  }
  CHECK(served == 5);
  stop = true;
  second.close();
  busy.close();
  loop.join();
}
