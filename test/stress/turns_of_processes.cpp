#include <stress/turns_of_processes.hpp>

#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>
#include <support/turn_file.hpp>

#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace latchkey::test {

namespace {

constexpr std::size_t processes = turn_file::processes;
constexpr auto limit = 8 * patience;

config enduring() {
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 2s * slowness;  // what a killed process costs the others
  settings.retry_delay = 20ms;
  settings.retry_attempts = 100'000;
  settings.timeout = 10s * slowness;
  return settings;
}

class stage {
 public:
  stage(exclusive_kind const& kind, disturbance how) : kind_(kind), how_(how) {
    for (int i = 0; i < kind.servers; ++i) servers_.push_back(std::make_unique<redis_server>());
    for (std::size_t i = 0; i < processes; ++i)
      workers_.push_back(
          std::make_unique<child_process>([this, i](child_process::channel& parent) { return work(i, parent); }));
  }

  void run() {
    stopwatch const watch;
    for (auto const& worker : workers_) REQUIRE(worker->talk().hear(limit) == "ready");
    for (auto const& worker : workers_) worker->talk().say("go");
    if (how_.kill_process) {
      REQUIRE(wait_until([&] { return file_.read().of[0] >= how_.turns / 10; }, limit));
      workers_[0]->send_signal(SIGKILL);
    }
    if (how_.kill_connections) kill_connections();
    for (std::size_t i = 0; i < processes; ++i) {
      INFO("process " << i);
      CHECK(workers_[i]->wait(limit) == (i == 0 && how_.kill_process ? 128 + SIGKILL : 0));
    }
    check();
    std::cout << kind_.name << ": " << file_.read().total << " turns in " << watch.passed().count() << " ms";
    if (how_.kill_connections) std::cout << ", connections killed " << kills_ << " times";
    std::cout << std::endl;  // before the next stage forks, which would print it again
  }

 private:
  int work(std::size_t me, child_process::channel& parent) {
    std::vector<client> clients;
    for (auto const& server : servers_) clients.emplace_back(server->uri(), enduring());
    auto const lock = kind_.make(clients, "turns");
    parent.say("ready");
    if (parent.hear(limit) != "go") return 1;
    for (long i = 0; i < how_.turns; ++i) {
      lease const held = lock.acquire({.wait = limit});
      if (!held.held()) return 2;
      file_.turn(me);
    }
    return 0;
  }

  void kill_connections() {
    std::vector<raw_redis> admins;
    for (auto const& server : servers_) admins.push_back(server->admin());
    auto const all_done = [&] {
      auto const now = file_.read();
      for (std::size_t i = how_.kill_process ? 1 : 0; i < processes; ++i)
        if (now.of[i] < how_.turns) return false;
      return true;
    };
    auto const begin = clock::now();
    for (auto next = begin; !all_done() && next < begin + limit; next += 20ms * slowness) {
      std::this_thread::sleep_until(next);
      for (auto& admin : admins) admin.kill_clients();
      ++kills_;
    }
  }

  void check() const {
    auto const now = file_.read();
    CHECK(now.total == std::accumulate(now.of.begin(), now.of.end(), 0L));
    for (std::size_t i = 0; i < processes; ++i) {
      INFO("process " << i);
      if (i == 0 && how_.kill_process)
        CHECK(now.of[i] < how_.turns);
      else
        CHECK(now.of[i] == how_.turns);
    }
  }

  exclusive_kind const& kind_;
  disturbance const how_;
  turn_file file_;
  std::vector<std::unique_ptr<redis_server>> servers_;
  std::vector<std::unique_ptr<child_process>> workers_;
  int kills_ = 0;
};

}  // namespace

void play_turns(exclusive_kind const& kind, disturbance how) { stage(kind, how).run(); }

}  // namespace latchkey::test
