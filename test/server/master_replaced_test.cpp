// A master that is replaced while it reads nothing.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// What a sentinel answers to the three questions of a client: this one is the master.
std::string names(endpoint const& master, char epoch) {
  std::string const port = std::to_string(master.port);
  return "*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) + "\r\n" + port +
         "\r\n*2\r\n$12\r\nconfig-epoch\r\n$1\r\n" + epoch + "\r\n*0\r\n";
}

}  // namespace

TEST_CASE("case t33: what is on its way to a master that is replaced never arrives", "[server][case-t33]") {
  redis_server old({.tcp = true}), next({.tcp = true});
  fault_proxy before(old.where(), true), sentinel(old.where(), true);
  sentinel.pretend(names(before.where(), '1'));
  event_log log;
  config settings = steady_config(log);
  settings.timeout = 2 * patience;  // it is given up for its successor alone
  settings.scan_interval = 100ms;
  client own("redis-sentinel://127.0.0.1:" + std::to_string(sentinel.where().port) + "/m", settings);
  for (int i = 0; i < 3; ++i) CHECK(own.get_lock("warm").acquire().release() == release_result::released);
  REQUIRE(wait_until([&] { return before.open() == 2; }));  // and one of callers that block
  before.silent(true);
  // More than the two kernels keep for whoever does not read.
  constexpr std::size_t many = 64, length = 60'000;
  std::vector<std::future<lease>> callers;
  for (std::size_t i = 0; i < many; ++i)
    callers.push_back(own.get_lock(std::to_string(i) + std::string(length, 'x'))
                          .async_acquire({.wait = patience}, boost::asio::use_future));
  REQUIRE(wait_until([&] { return own.snapshot().bytes_sent > many * length; }));
  sentinel.pretend(names(next.where(), '2'));
  for (auto& one : callers) CHECK(one.get().held());
  before.hold(fault_proxy::way::requests, true);
  before.silent(false);
  CHECK(wait_until([&] { return before.resets() == 2; }));
  CHECK(before.requests()["EVALSHA"] + before.requests()["EVAL"] < static_cast<int>(many));
}
