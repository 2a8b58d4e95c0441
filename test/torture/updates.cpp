#include <interop/support/peer.hpp>
#include <latchkey/latchkey.hpp>
#include <simulation/randomness.hpp>
#include <torture/checker.hpp>
#include <torture/updates.hpp>
#include <wire/cluster.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

namespace latchkey::torture {

std::optional<std::uint32_t> counter::read(credential by) { return exchange(std::nullopt, by); }
std::optional<std::uint32_t> counter::write(std::uint32_t value, credential by) { return exchange(value, by); }

std::optional<std::uint32_t> counter::exchange(std::optional<std::uint32_t> value, credential by) {
  auto const mine = std::uint64_t{by.token} << 8 | by.holder;
  for (auto seen = all_.load();;) {
    auto const theirs = seen >> 32, newest = theirs >> 8;
    if (newest > by.token || (newest == by.token && by.token != 0 && theirs != mine)) return std::nullopt;
    auto const stood = static_cast<std::uint32_t>(seen);
    if (all_.compare_exchange_weak(seen, mine << 32 | value.value_or(stood))) return stood;
  }
}

ledger& map_ledger(std::string const& folder) { return map_file<ledger>(folder + "/ledger"); }

std::string counter_name(way how, std::size_t number) {
  static char const* const names[] = {"n0", "n1", "all", "quarantine", "token", "redisson"};
  auto const name = std::string(names[static_cast<std::size_t>(how)]) + "-";
  for (int i = 0;; ++i) {
    auto made = name + std::to_string(number) + "-" + std::to_string(i);
    if (detail::slot_of(made) * counters / detail::slot_count == number) return made;
  }
}

timing draw_timing(simulation::dice& by, milliseconds lease) {
  return {.work = by.one_in(300) ? lease.count() * ms * 5 / 2 : by.between(0, 20 * ms), .rest = by.between(0, 60 * ms)};
}

namespace counting {

void sleep(std::int64_t length) { std::this_thread::sleep_for(std::chrono::nanoseconds(length)); }

config settings_for(options const& run, way how) {
  auto made = worker_config(run);
  made.min_synced_replicas = how == way::one ? 1 : how == way::all ? -1 : 0;
  if (how == way::quarantine) {
    made.lock_watchdog_timeout = run.lease / 2;  // it has to be over before the quarantine is
    made.failover_quarantine = run.quarantine;
  }
  return made;
}

class updater {
 public:
  updater(options const& run, board& shared, counter& into, client& own, way how, std::size_t number)
      : run_(run),
        shared_(shared),
        into_(into),
        fenced_(how == way::token),
        lock_(fenced_ ? own.get_fenced_lock(counter_name(how, number)) : own.get_lock(counter_name(how, number))),
        dice_(simulation::mix(run.seed, static_cast<std::uint64_t>(run.index), static_cast<std::uint64_t>(how),
                              number)) {}

  void run() {
    while (shared_.now_is == board::work) {
      auto const next = draw_timing(dice_, run_.lease);
      try {
        update(next.work);
      } catch (lock_error const&) {
        ++into_.failed;
      }
      sleep(next.rest);
    }
  }

 private:
  void update(std::int64_t work) {
    acquire_options how;
    how.wait = run_.lease;
    auto held = lock_.acquire(how);
    if (!held) return static_cast<void>(++into_.failed);
    auto const granted = now();
    credential const mine{fenced_ ? static_cast<std::uint32_t>(held.fencing_token().value_or(0)) : 0,
                          static_cast<std::uint8_t>(run_.index)};
    auto const value = into_.read(mine);
    if (!value) return static_cast<void>(++into_.refused);
    sleep(work);
    // Who has heard of a loss does not write; the token alone protects from who has not.
    auto const asked = now();
    if (!held.held()) return static_cast<void>(++into_.untold);
    auto const before = into_.write(*value + 1, mine);
    if (!before) return static_cast<void>(++into_.refused);
    ++into_.acknowledged;
    if (*before != *value) tell_loss(*value, *before, granted, asked);
    static_cast<void>(held.release());
  }

  // Whoever reads it can look up what befell the servers then: the clock is that of histories.
  void tell_loss(std::uint32_t read, std::uint32_t stood, std::int64_t granted, std::int64_t asked) const {
    std::fprintf(
        stderr,
        "LOST UPDATES: of %s %u was read, and %u stood there; granted at %s, held() asked %s later, written %s "
        "after that\n",
        lock_.name().c_str(), read, stood, in_ms(granted).c_str(), in_ms(asked - granted).c_str(),
        in_ms(now() - asked).c_str());
  }

  options const& run_;
  board& shared_;
  counter& into_;
  bool const fenced_;
  distributed_lock const lock_;
  simulation::dice dice_;
};

}  // namespace counting

int run_updates_worker(options const& run) {
  auto& shared = map_board(board_file(run.folder));
  auto& into = map_ledger(run.folder);
  std::deque<client> clients;
  std::vector<std::jthread> threads;
  for (std::size_t w = 0; w < ways; ++w) {
    auto const how = static_cast<way>(w);
    if (how == way::redisson) continue;
    auto& own = clients.emplace_back(run.servers.at(0), counting::settings_for(run, how));
    for (std::size_t i = 0; i < counters; ++i)
      threads.emplace_back([&, how, w, i] { counting::updater(run, shared, into.of[w][i], own, how, i).run(); });
  }
  return 0;
}

struct redisson_updates::parts {
  parts(options const& run, std::string const& uri, ledger& into)
      : drivers{test::redisson_peer(run.lease, {uri}), test::redisson_peer(run.lease, {uri})}, given(run), into(into) {
    for (std::size_t i = 0; i < 2 * counters; ++i) threads.emplace_back([this, i] { count(i); });
  }
  ~parts() {
    over = true;
    threads.clear();
  }

  void count(std::size_t thread) {
    auto const number = thread % counters;
    auto const name = counter_name(way::redisson, number);
    auto& mine = into.of[static_cast<std::size_t>(way::redisson)][number];
    simulation::dice dice(simulation::mix(given.seed, thread));
    while (!over) {
      auto const next = draw_timing(dice, given.lease);
      try {
        update(*drivers[thread / counters], "w" + std::to_string(thread), name, mine, next.work);
      } catch (std::exception const&) {
        ++mine.failed;
      }
      counting::sleep(next.rest);
    }
  }

  void update(test::peer& driver, std::string const& who, std::string const& name, counter& mine, std::int64_t work) {
    auto const had = driver.call(who, "try_lock", "lock", name, given.lease, -1);
    if (had != "true") return static_cast<void>(++mine.failed);
    auto const value = mine.read({});
    counting::sleep(work);
    if (driver.call(who, "is_held", "lock", name) == "true") {
      mine.write(*value + 1, {});
      ++mine.acknowledged;
    } else {
      ++mine.untold;
    }
    driver.call(who, "unlock", "lock", name);
  }

  // Two clients, as of the other rows: one alone never goes on with an old master beside itself.
  std::array<std::unique_ptr<test::peer>, 2> drivers;
  options const& given;
  ledger& into;
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads{};
};

redisson_updates::redisson_updates(options const& run, std::string const& uri, ledger& into)
    : parts_(std::make_unique<parts>(run, uri, into)) {}
redisson_updates::~redisson_updates() = default;

}  // namespace latchkey::torture
