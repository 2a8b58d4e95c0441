// The free pair of every kind beside a bare client that sends what the library was heard to send.
#include <common/bare_client.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>
#include <support/kinds.hpp>

#include <latchkey/latchkey.hpp>

#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace bench {
namespace {

using latchkey::test::redis_server;

constexpr std::string_view red = "red_lock";
constexpr std::string_view red_of_many_threads = "red_lock, each client with a thread of its own";
constexpr double of_the_reentrant_lock = 1.15;
constexpr double of_parallel_calls = 1.3;

struct pair_of_kind {
  std::string name;
  std::function<void()> pair;
  std::size_t servers = 1;
};

// Locks that only one owner holds, and then what has other words. `together` are clients that share a thread.
std::vector<pair_of_kind> all_pairs(std::vector<latchkey::client> const& clients,
                                    std::vector<latchkey::client> const& together) {
  std::vector<pair_of_kind> all;
  auto const add = [&](std::string_view name, latchkey::test::lock_kind const& kind, auto const& by) {
    all.push_back({std::string(name),
                   [lock = kind.make(by, new_name("kinds"))] {
                     lock.lock();
                     lock.unlock();
                   },
                   static_cast<std::size_t>(kind.servers)});
  };
  for (auto const& kind : latchkey::test::exclusive_kinds()) {
    add(kind.name, kind, kind.name == red ? together : clients);
    if (kind.name == red) add(red_of_many_threads, kind, clients);
  }
  auto const& client = clients.front();
  all.push_back({"read_lock", [lock = client.get_read_write_lock(new_name("kinds")).read_lock()] {
                   lock.lock();
                   lock.unlock();
                 }});
  auto const permits = client.get_semaphore(new_name("kinds"));
  permits.add_permits(1);
  all.push_back({"semaphore", [permits] {
                   permits.acquire();
                   permits.release();
                 }});
  auto const leased = client.get_permit_semaphore(new_name("kinds"));
  leased.add_permits(1);
  all.push_back({"permit_semaphore", [leased] { leased.release(leased.acquire()); }});
  auto const latch = client.get_count_down_latch(new_name("kinds"));
  all.push_back({"count_down_latch", [latch] {
                   static_cast<void>(latch.try_set_count(1));
                   latch.count_down();
                 }});
  return all;
}

using heard_commands = std::vector<std::vector<command_words>>;

// The same scripts in the same order.
bool alike(heard_commands const& heard) {
  auto const same_script = [](command_words const& a, command_words const& b) {
    return a.size() == b.size() && (a.size() < 2 || a[1] == b[1]);
  };
  return std::all_of(heard.begin(), heard.end(), [&](auto const& one) {
    auto const& first = heard.front();
    return !one.empty() && std::equal(one.begin(), one.end(), first.begin(), first.end(), same_script);
  });
}

// A server whose answer came after that of the majority may be told more than the others, or what it is told may belong
// to the pair before: it is tried again then.
heard_commands record_alike(std::vector<redis_server const*> const& servers, std::function<void()> const& pair) {
  constexpr int most_tries = 30;
  for (int i = 0; i < most_tries; ++i)
    if (auto heard = record(servers, pair); alike(heard)) return heard;
  throw std::runtime_error("the servers heard different commands");
}

// One bare client for each server; all are asked before any is heard.
std::function<void()> by_hand(std::vector<redis_server const*> const& servers, pair_of_kind const& what) {
  auto const heard = record_alike(servers, what.pair);
  auto const clients = std::make_shared<std::vector<std::unique_ptr<bare_client>>>();
  for (std::size_t i = 0; i < servers.size(); ++i)
    clients->push_back(std::make_unique<bare_client>(servers[i]->where().port, heard[i]));
  if (clients->size() == 1) return [clients] { clients->front()->pair(); };
  return [clients] {
    for (std::size_t i = 0; i < clients->front()->commands(); ++i) {
      for (auto const& one : *clients) one->ask(i);
      for (auto const& one : *clients) one->hear(i);
    }
  };
}

// The kind, and its floor.
std::vector<side> with_floor(pair_of_kind const& kind, std::vector<redis_server const*> const& servers) {
  // The direct lane is there, and everything that happens once has happened.
  for (int i = 0; i < 300; ++i) kind.pair();
  std::vector const used(servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(kind.servers));
  return {blocking_side(kind.name, kind.pair), blocking_side("bare", by_hand(used, kind))};
}

// Beside the reentrant lock and its floor, in the same rounds: from one minute to the next a machine changes more than
// kinds differ.
row played(stage& on, pair_of_kind const& kind, std::vector<side> sides, std::vector<side> const& lock) {
  bool const one_server = kind.servers == 1;
  if (one_server) sides.insert(sides.end(), lock.begin(), lock.end());
  regime const& what = *find_regime("back-to-back");
  for (auto const& one : sides) one.round(what);
  auto const found = compare(what, (on.rounds() + 1) / 2, sides, on.server().pid());
  row made{.name = kind.name + ", p50",
           .unit = "us",
           .figure = found.sides[0].median_p50(),
           .against = one_server ? "its own floor" : "five bare calls at once",
           .reference = found.sides[1].median_p50(),
           .ratio = found.ratio_p50(0, 1),
           .note = found.note(0, 1)};
  if (!one_server)
    made.most = of_parallel_calls;
  else if (kind.name != lock.front().name)
    made.most = of_the_reentrant_lock * found.ratio_p50(2, 3);
  return made;
}

}  // namespace

void run_kinds(stage& on) {
  std::vector<std::unique_ptr<redis_server>> more;
  std::vector<redis_server const*> servers{&on.server()};
  for (int i = 1; i < 5; ++i) {
    more.push_back(std::make_unique<redis_server>(latchkey::test::redis_options{.tcp = true}));
    servers.push_back(more.back().get());
  }
  std::vector<latchkey::client> clients;
  for (auto const* server : servers) clients.emplace_back(server->uri());
  boost::asio::thread_pool thread(1);
  std::vector<latchkey::client> together;
  for (auto const* server : servers) together.emplace_back(thread, server->uri());
  auto const all = all_pairs(clients, together);
  auto const lock = with_floor(all.front(), servers);
  for (auto const& kind : all) {
    on.say(kind.name);
    try {
      on.add(played(on, kind, with_floor(kind, servers), lock));
    } catch (std::exception const& problem) {
      on.add({.name = kind.name + ", p50", .unit = "us", .against = "its own floor", .missing = problem.what()});
    }
  }
  for (auto& one : together) one.close();
}

}  // namespace bench
