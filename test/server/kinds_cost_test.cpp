// What each exclusive kind costs in commands. Prints the table of the README.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/exclusive_kinds.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

config unhurried() {
  auto settings = steady_config();
  settings.ping_interval = 0ms;
  return settings;
}

using many_clients = std::vector<client>;

many_clients connect_to_all(std::vector<std::unique_ptr<redis_server>> const& servers, int count) {
  many_clients made;
  for (int i = 0; i < count; ++i) made.emplace_back(servers[static_cast<std::size_t>(i)]->uri(), unhurried());
  return made;
}

std::uint64_t sent_by(many_clients const& all) {
  std::uint64_t sum = 0;
  for (auto const& one : all) sum += one.snapshot().commands;
  return sum;
}

// Commands of one acquisition and its release. Everything that happens once has happened before.
double free_pair(exclusive_kind const& kind, many_clients const& own) {
  constexpr int turns = 100;
  auto const lock = kind.make(own, new_name());
  auto const turn = [&] {
    lock.lock();
    lock.unlock();
  };
  for (int i = 0; i < 20; ++i) turn();  // the connection for blocking callers comes a little later than the first
  // A majority has answered; what the others are still asked for belongs to this turn.
  CHECK(wait_until([&] {
    return std::all_of(own.begin(), own.end(), [](client const& one) {
      auto const now = one.snapshot();
      return now.held == 0 && now.in_doubt == 0;
    });
  }));
  auto const before = sent_by(own);
  for (int i = 0; i < turns; ++i) turn();
  return double(sent_by(own) - before) / turns;
}

void lock_and_unlock(distributed_lock const& lock, int turns) {
  for (int i = 0; i < turns; ++i) {
    lock.lock();
    lock.unlock();
  }
}

double contended_turn(exclusive_kind const& kind, many_clients const& a, many_clients const& b, int threads) {
  constexpr int turns = 200 / slowness;
  auto const name = new_name();
  auto const before = sent_by(a) + sent_by(b);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] { lock_and_unlock(kind.make(a, name), turns); });
      all.emplace_back([&] { lock_and_unlock(kind.make(b, name), turns); });
    }
  }
  return double(sent_by(a) + sent_by(b) - before) / (2 * threads * turns);
}

}  // namespace

TEST_CASE("every exclusive kind: a free pair costs two commands for each server", "[server][kind][show]") {
  std::vector<std::unique_ptr<redis_server>> servers;
  for (int i = 0; i < 5; ++i) servers.push_back(std::make_unique<redis_server>());
  std::printf("| kind | free: acquire + release | 2 clients, 1 caller each | 2 clients, 8 callers each |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (auto const& kind : exclusive_kinds()) {
    auto const a = connect_to_all(servers, kind.servers);
    auto const b = connect_to_all(servers, kind.servers);
    auto const alone = free_pair(kind, a);
    auto const few = contended_turn(kind, a, b, 1);
    auto const many = contended_turn(kind, a, b, 8);
    std::printf("| `%s` | %.1f | %.1f | %.1f |\n", kind.name.c_str(), alone, few, many);
    // Of several servers those that answer late may find the lock released again, and are asked for both at once.
    CHECK(alone <= 2.0 * kind.servers);
    if (kind.servers == 1) CHECK(alone == 2.0);
    CHECK(few > 0);
    CHECK(many > 0);
  }
}
