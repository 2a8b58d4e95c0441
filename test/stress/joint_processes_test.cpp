// Four processes count in one file under a lock of several members: no turn may be lost, none may be counted twice.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int processes = 4;

config process_config() {
  config settings;
  settings.lock_watchdog_timeout = 4s * slowness;
  settings.connect_timeout = 2s * slowness;
  settings.timeout = 1s * slowness;
  settings.retry_delay = 20ms;
  settings.retry_attempts = 1'000;
  settings.close_timeout = 1s;
  return settings;
}

// The servers, the file, and how a process makes its lock of them.
struct counting_house {
  explicit counting_house(std::size_t count) { servers.resize(count); }

  static long read(std::string const& path) {
    long value = 0;
    std::ifstream(path) >> value;
    return value;
  }
  // As a whole or not at all, wherever the process is killed.
  static void write(std::string const& path, long value) {
    std::string const next = path + ".next";
    std::ofstream(next) << value;
    std::rename(next.c_str(), path.c_str());
  }
  std::string own_file(int process) const { return folder.path() + "/count" + std::to_string(process); }
  std::string file() const { return folder.path() + "/sum"; }

  // One after the other wants members in another order.
  distributed_lock make_lock(std::vector<std::unique_ptr<client>> const& clients, int process) const {
    std::vector<distributed_lock> members;
    for (auto const& one : clients) members.push_back(one->get_lock("counted"));
    if (clients.size() > 2) return clients[0]->get_red_lock(members);
    members.push_back(clients[0]->get_lock("counted too"));
    if (process % 2 == 1) std::reverse(members.begin(), members.end());
    return clients[0]->get_multi_lock(members);
  }

  int count(int process, int turns) const {
    std::vector<std::unique_ptr<client>> clients;
    for (auto const& one : servers) clients.push_back(std::make_unique<client>(one.uri(), process_config()));
    auto const lock = make_lock(clients, process);
    for (int done = 0; done < turns;) {
      auto held = lock.acquire();
      if (!held.held()) continue;
      write(file(), read(file()) + 1);
      write(own_file(process), ++done);
      static_cast<void>(held.release());
    }
    return 0;
  }

  std::deque<redis_server> servers;
  temp_folder folder;
};

enum class trouble { none, sigkill, cut };

void count_together(std::size_t servers, int turns, trouble what) {
  counting_house s(servers);
  std::deque<child_process> children;
  for (int i = 0; i < processes; ++i)
    children.emplace_back([&s, i, turns](child_process::channel&) { return s.count(i, turns); });
  std::vector<raw_redis> admins;
  for (auto const& one : s.servers) admins.push_back(one.admin());
  if (what == trouble::sigkill) {
    REQUIRE(wait_until([&] { return counting_house::read(s.own_file(0)) > turns / 4; }, 4 * patience));
    children[0].send_signal(SIGKILL);
    CHECK(children[0].wait() == 128 + SIGKILL);
  }
  auto const finished = [&] {
    for (int i = what == trouble::sigkill ? 1 : 0; i < processes; ++i)
      if (counting_house::read(s.own_file(i)) < turns) return false;
    return true;
  };
  stopwatch since;
  int kills = 0;
  while (!finished() && since.passed() < 6 * patience) {
    std::this_thread::sleep_for(20ms);
    if (what != trouble::cut) continue;
    for (auto& one : admins) kills += one.kill_clients();
  }
  long sum = 0;
  for (int i = 0; i < processes; ++i) {
    long const own = counting_house::read(s.own_file(i));
    sum += own;
    if (i == 0 && what == trouble::sigkill) continue;
    CHECK(own == turns);
    CHECK(children[static_cast<std::size_t>(i)].wait() == 0);
  }
  long const counted = counting_house::read(s.file());
  std::cout << servers << " servers: " << counted << " turns in " << since.passed().count() << " ms, " << kills
            << " connections killed\n";
  // The killed one may have counted in the one file and not yet in the other.
  CHECK((counted == sum || (what == trouble::sigkill && counted == sum + 1)));
}

}  // namespace

TEST_CASE("multi lock: four processes count exactly", "[stress][multi]") {
  count_together(2, 1'000 / slowness, trouble::none);
}

TEST_CASE("multi lock: four processes count exactly, one of them killed", "[stress][multi]") {
  count_together(2, 400 / slowness, trouble::sigkill);
}

TEST_CASE("multi lock: four processes count exactly while connections are killed", "[stress][multi]") {
  count_together(2, 100, trouble::cut);
}

TEST_CASE("red lock: four processes count exactly", "[stress][red]") {
  count_together(5, 1'000 / slowness, trouble::none);
}

TEST_CASE("red lock: four processes count exactly, one of them killed", "[stress][red]") {
  count_together(5, 300 / slowness, trouble::sigkill);
}

TEST_CASE("red lock: four processes count exactly while connections are killed", "[stress][red]") {
  count_together(5, 50, trouble::cut);
}
