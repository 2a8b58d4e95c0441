// One lock that several processes want all the time. Each process is a fork of this one, with a client of its own.
#include <common/bare_client.hpp>
#include <common/numbers.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>
#include <support/child_process.hpp>

#include <latchkey/latchkey.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>

namespace bench {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::size_t most_samples = 1 << 20;
constexpr std::size_t most_processes = 16;

// What the processes share. Everything but the flags is written under the lock only.
struct board {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, over{false};
  int last_holder = -1;           // which process had the lock last
  std::int64_t released_at = 0;   // when it began to release
  std::size_t samples = 0;        // hand-offs from one process to another
  std::int64_t acquisitions = 0;  // of which so many in the time:
  std::int64_t timed = 0;
  std::array<std::int64_t, most_processes> each{};     // of them, by process
  std::array<std::int64_t, most_processes> streaks{};  // how often it came to one
  std::array<std::int64_t, most_processes> lost_at{};  // when another process took it from this one
  std::size_t waits = 0;                               // of processes, until they had it again
  std::array<float, most_samples> hand_off;            // microseconds
  std::array<float, most_samples> wait;                // milliseconds
};

using shared_board = std::unique_ptr<board, void (*)(board*)>;

shared_board make_board() {
  void* const place = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::runtime_error("no memory to share");
  return {new (place) board, [](board* one) { ::munmap(one, sizeof(board)); }};
}

void note_grant(board& on, int me) {
  std::int64_t const at = now();
  if (on.last_holder != me && on.last_holder >= 0 && on.samples < most_samples)
    on.hand_off[on.samples++] = static_cast<float>(static_cast<double>(at - on.released_at) * 1e-3);
  if (on.last_holder != me) {
    auto const mine = static_cast<std::size_t>(me);
    ++on.streaks[mine];
    if (on.lost_at[mine] != 0 && on.waits < most_samples)
      on.wait[on.waits++] = static_cast<float>(static_cast<double>(at - on.lost_at[mine]) * 1e-6);
    if (on.last_holder >= 0) on.lost_at[static_cast<std::size_t>(on.last_holder)] = at;
  }
  on.last_holder = me;
  on.each[static_cast<std::size_t>(me)] += !on.over.load(std::memory_order_relaxed);
  ++on.acquisitions;
  on.timed += !on.over.load(std::memory_order_relaxed);
}

asio::awaitable<void> waiter(latchkey::distributed_lock lock, board& on, int me) {
  auto const self = latchkey::owner::make();
  while (!on.over.load(std::memory_order_relaxed)) {
    co_await lock.async_lock(self);
    note_grant(on, me);
    on.released_at = now();
    co_await lock.async_unlock(self);
  }
}

// The body of one process. Says at the end how many commands it has sent.
int play(latchkey::test::child_process::channel& parent, std::string const& uri, std::string const& name, board& on,
         int me, int waiters) {
  asio::io_context io(1);
  latchkey::client client(io, uri, quiet_config());
  auto const lock = client.get_lock(name);
  client.get_lock(name + std::to_string(me)).async_is_locked([](latchkey::error_code, bool) {});  // connects
  while (!client.snapshot().connected) io.run_one_for(10ms);
  ++on.ready;
  while (!on.go) io.run_one_for(1ms);
  int left = waiters;
  auto const before = client.snapshot().commands;
  for (int i = 0; i < waiters; ++i) asio::co_spawn(io, waiter(lock, on, me), [&](std::exception_ptr) { --left; });
  while (left > 0) io.run_one_for(10ms);
  parent.say(std::to_string(client.snapshot().commands - before));
  client.close();
  return 0;
}

struct outcome {
  double per_second = 0, hand_off = 0, commands = 0;  // of one acquisition
  double jain = 0, jain_of_streaks = 0;               // by process
  double wait = 0;                                    // of a process, p99, in milliseconds
};

// The last of the processes has `in_last` waiters.
outcome measure(stage& on, int processes, int waiters, int in_last, std::chrono::milliseconds time) {
  auto const shared = make_board();
  auto const name = new_name("processes");
  auto const uri = on.uri();
  std::vector<std::unique_ptr<latchkey::test::child_process>> all;
  for (int i = 0; i < processes; ++i)
    all.push_back(std::make_unique<latchkey::test::child_process>(
        [&, i](auto& parent) { return play(parent, uri, name, *shared, i, i + 1 < processes ? waiters : in_last); }));
  std::int64_t const limit = now() + 20'000'000'000;
  while (shared->ready < processes && now() < limit) sleep_until(now() + 1'000'000);
  if (shared->ready < processes) throw std::runtime_error("the processes do not begin");
  std::int64_t const began = now();
  shared->go = true;
  sleep_until(began + std::chrono::nanoseconds(time).count());
  shared->over = true;
  double const seconds = static_cast<double>(now() - began) * 1e-9;
  double commands = 0;
  for (auto const& one : all) {
    auto const said = one->talk().hear(30s);
    if (said.empty() || one->wait(10s) != 0) throw std::runtime_error("a process did not end as it should");
    commands += std::stod(said);
  }
  std::vector<double> samples(shared->hand_off.begin(),
                              shared->hand_off.begin() + static_cast<std::ptrdiff_t>(shared->samples));
  auto const count = static_cast<double>(shared->acquisitions);
  std::vector<double> waits(shared->wait.begin(), shared->wait.begin() + static_cast<std::ptrdiff_t>(shared->waits));
  std::vector<double> const each(shared->each.begin(), shared->each.begin() + processes);
  std::vector<double> const streaks(shared->streaks.begin(), shared->streaks.begin() + processes);
  return {static_cast<double>(shared->timed) / seconds,
          samples.empty() ? 0 : median(samples),
          commands / count,
          jain_index(each),
          jain_index(streaks),
          waits.empty() ? 0 : quantile(waits, 0.99)};
}

outcome measure(stage& on, int processes, int waiters, std::chrono::milliseconds time) {
  return measure(on, processes, waiters, waiters, time);
}

// Processes that want it always: each has its share, and waits for one streak of each of the others.
void run_shares(stage& on) {
  double const streak = static_cast<double>(latchkey::config{}.local_handoff.max_time.count());
  for (int const processes : {2, 4}) {
    auto const way = std::to_string(processes) + " processes, 8 callers each: ";
    on.say(way + "shares");
    auto const found = measure(on, processes, 8, 2'000ms);
    double const most = 1.5 * streak * (processes - 1) + 5;
    on.add({.name = way + "acquisitions", .unit = "1/s", .figure = found.per_second});
    double const least = processes == 2 ? 0.99 : 0.97;
    // How much a process gets done in its streak depends on which cores it and the server are on.
    on.add(
        {.name = way + "Jain index by process, streaks", .unit = "", .figure = found.jain_of_streaks, .least = least});
    on.add({.name = way + "Jain index by process, acquisitions", .unit = "", .figure = found.jain, .least = least});
    on.add({.name = way + "a process waits, p99", .unit = "ms", .figure = found.wait, .most = most});
  }
  on.say("2 processes, 8 callers and one");
  auto const found = measure(on, 2, 8, 1, 2'000ms);
  on.add({.name = "2 processes, 8 callers and one: acquisitions", .unit = "1/s", .figure = found.per_second});
  on.add({.name = "2 processes, 8 callers and one: a process waits, p99",
          .unit = "ms",
          .figure = found.wait,
          .most = 1.5 * streak + 5});
}

}  // namespace

void run_processes(stage& on) {
  constexpr int many = 64;
  constexpr double streak_by_hand_offs = 64;  // so many fit into a streak even where each is a request
  bare_client bare(on.port(), new_name("processes"));
  auto const floor = blocking_side("floor", [&] { bare.pair(); });
  auto const trip = [&] { return median(floor.round(*find_regime("back-to-back")).times) / 2; };
  trip();
  std::vector<std::pair<double, double>> rates, delays;
  double first = 0, last = 0;
  for (int const processes : {2, 4, 8, 16}) {
    auto const way = std::to_string(processes) + " processes, ";
    on.say(way + "one waiter each, then 64 each");
    double const round_trip = trip();
    auto const one = measure(on, processes, 1, 1'500ms);
    on.add({.name = way + "one waiter each: hand-off p50",
            .unit = "us",
            .figure = one.hand_off,
            .against = "round trip of the floor",
            .reference = round_trip,
            .most = 2.2});
    on.add({.name = way + "one waiter each: commands of an acquisition",
            .unit = "",
            .figure = one.commands,
            .most = processes + 1.0});
    auto const crowd = measure(on, processes, many, 1'500ms);
    on.add({.name = way + "64 waiters each: commands of an acquisition",
            .unit = "",
            .figure = crowd.commands,
            .most = 1 + processes / streak_by_hand_offs});
    on.add({.name = way + "one waiter each: acquisitions", .unit = "1/s", .figure = one.per_second});
    rates.emplace_back(processes, one.per_second);
    delays.emplace_back(processes, one.hand_off);
    if (processes == 2) first = one.per_second;
    last = one.per_second;
  }
  on.add({.name = "acquisitions of 16 processes",
          .unit = "1/s",
          .figure = last,
          .against = "those of 2",
          .reference = first,
          .least = 0.8});
  run_shares(on);
  on.say("10,000 waiters in each of 2 processes");
  std::vector<std::pair<double, double>> by_waiters;
  for (int const waiters : {1, 10, 100, 1'000, 10'000})
    by_waiters.emplace_back(waiters, measure(on, 2, waiters, 1'500ms).commands);
  on.add({.name = "2 processes, 10,000 waiters each: commands of an acquisition",
          .unit = "",
          .figure = by_waiters.back().second,
          .most = 1 + 2 / streak_by_hand_offs});
  on.draw("commands by waiters", "2 processes", by_waiters);
  on.draw("processes", "acquisitions a second", rates);
  on.draw("hand-off", "p50 in us", delays);
}

}  // namespace bench
