// What a client's process shares with others: descriptors, and threads of name look-ups.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/endpoint.hpp>
#include <support/host_names.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <future>
#include <set>
#include <sstream>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::descriptor;
using latchkey::test::event_log;
using latchkey::test::host_names;
using latchkey::test::steady_config;
using latchkey::test::wait_until;

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
