#include <common/machine_state.hpp>
#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/slow_calls.hpp>
#include <suite/stage.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace bench {

// Bytes that are allocated now, with what malloc adds to each piece.
inline double allocated_bytes() {
  auto const now = ::mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd);
}

inline double switches_by_itself() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_nvcsw);
}

// Timers that this process has open in the kernel.
inline int kernel_timers() {
  int count = 0;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().find("timerfd") != std::string::npos;
  }
  return count;
}

// Many holds that the watchdog renews: what they cost the client, the server, and its other users.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int most_holds = 100'000;
constexpr int takers = 500;

// Each at a random moment, so that all take about `spread`; zero: one after the other at once.
asio::awaitable<void> take(latchkey::client const& client, latchkey::owner me, std::string prefix, int first, int last,
                           std::chrono::microseconds spread) {
  std::minstd_rand random(static_cast<unsigned>(first) + 1);
  std::uniform_int_distribution<std::int64_t> pause(0, 2 * spread.count() / std::max(last - first, 1));
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int i = first; i < last; ++i) {
    if (spread.count() > 0) {
      timer.expires_after(std::chrono::microseconds(pause(random)));
      co_await timer.async_wait(asio::use_awaitable);
    }
    co_await client.get_lock(prefix + std::to_string(i)).async_lock(me);
  }
}

// Holds number `first` to `last`.
void take_all(latchkey::client const& client, latchkey::owner me, std::string const& prefix, int first, int last,
              std::chrono::microseconds spread = {}) {
  asio::io_context io(1);
  std::exception_ptr failure;
  int const step = (last - first + takers - 1) / takers;
  for (int i = first; i < last; i += step)
    asio::co_spawn(io, take(client, me, prefix, i, std::min(i + step, last), spread), [&](std::exception_ptr failed) {
      if (failed) failure = failed;
    });
  io.run();
  if (failure) std::rethrow_exception(failure);
}

struct cost {
  double client_cpu = 0;  // parts of one core
  double server_cpu = 0;
  double renewals = 0;  // a second
};

cost watch(stage& on, latchkey::client const& client, std::chrono::seconds time) {
  auto const cpu = [] { return static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9; };
  double const own = cpu(), server = cpu_seconds_of(on.server().pid());
  auto const renewed = client.snapshot().renewals;
  std::int64_t const began = now();
  std::this_thread::sleep_for(time);
  double const seconds = static_cast<double>(now() - began) * 1e-9;
  return {(cpu() - own) / seconds, (cpu_seconds_of(on.server().pid()) - server) / seconds,
          static_cast<double>(client.snapshot().renewals - renewed) / seconds};
}

// The watchdog renews every 10 s: holds that were taken over as long are renewed at all times.
void run_random_moments(stage& on) {
  latchkey::client const client(on.uri(), quiet_config());
  auto const me = latchkey::owner::make();
  auto const prefix = new_name("random") + ":";
  take_all(client, me, prefix + "warm:", 0, 100);
  on.say("taking " + std::to_string(most_holds) + " holds at random moments");
  take_all(client, me, prefix, 0, most_holds, 10s);
  std::this_thread::sleep_for(10s);  // each was renewed
  on.say("watching their renewals for 30 s");
  auto const found = watch(on, client, 30s);
  auto const state = client.snapshot();
  on.add({.name = "taken at random moments: CPU of the client",
          .unit = "% of a core",
          .figure = 100 * found.client_cpu,
          .most = 1.5});
  on.add(
      {.name = "taken at random moments: CPU of the server", .unit = "% of a core", .figure = 100 * found.server_cpu});
  on.add({.name = "taken at random moments: renewals", .unit = "1/s", .figure = found.renewals});
  on.add({.name = "taken at random moments: holds lost",
          .unit = "",
          .figure = static_cast<double>(state.lost),
          .most = 0});
}

void run_together(stage& on) {
  auto admin = on.server().admin();
  latchkey::client const client(on.uri(), quiet_config());
  auto const me = latchkey::owner::make();
  auto const prefix = new_name("holds") + ":";
  take_all(client, me, prefix + "warm:", 0, 100);
  std::vector<std::pair<double, double>> own, server;
  int held = 0;
  double bytes = 0;
  cost found;
  for (int const wanted : {1'000, 10'000, most_holds}) {
    on.say("taking " + std::to_string(wanted - held) + " more holds");
    double const before = allocated_bytes();
    take_all(client, me, prefix, held, wanted);
    bytes = (allocated_bytes() - before) / (wanted - held);
    held = wanted;
    auto const time = wanted == most_holds ? 30s : 10s;
    on.say("watching their renewals for " + std::to_string(time.count()) + " s");
    found = watch(on, client, time);
    own.emplace_back(wanted, 100 * found.client_cpu);
    server.emplace_back(wanted, 100 * found.server_cpu);
  }
  on.say("looking for the longest call");
  slow_calls calls(admin);
  for (std::int64_t const end = now() + 11'000'000'000; now() < end; calls.look()) sleep_until(now() + 50'000'000);
  auto const state = client.snapshot();
  on.add({.name = "CPU of the client", .unit = "% of a core", .figure = 100 * found.client_cpu, .most = 0.5});
  on.add({.name = "CPU of the server",
          .unit = "% of a core",
          .figure = 100 * found.server_cpu,
          .against = "Redisson's renewals",
          .most = 1.2,
          .missing = "scripts/bench peers"});
  on.add({.name = "renewals", .unit = "1/s", .figure = found.renewals});
  on.add({.name = "memory of a hold", .unit = "bytes", .figure = bytes, .most = 640});
  on.add({.name = "holds lost", .unit = "", .figure = static_cast<double>(state.lost), .most = 0});
  on.add({.name = "holds that live", .unit = "", .figure = static_cast<double>(state.held), .least = most_holds});
  on.add({.name = "longest renewal call", .unit = "ms", .figure = calls.longest_us() * 1e-3, .most = 1});
  on.draw("cost by holds", "CPU of the client, % of a core", own);
  on.draw("cost by holds", "CPU of the server, % of a core", server);
  admin.ok("FLUSHALL");
}

}  // namespace

void run_holds(stage& on) {
  run_together(on);
  run_random_moments(on);
  on.server().admin().ok("FLUSHALL");
}

// What one more caller costs who waits for a lock that another process has.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct waiters {
  explicit waiters(std::string const& uri) : client(io, uri, quiet_config()), lock(client.get_lock(name)) {}

  void add(int wanted) {
    for (; count < wanted; ++count) lock.async_lock(latchkey::owner::make(), [this](latchkey::error_code) { ++ended; });
    std::int64_t const limit = now() + 10'000'000'000;
    while (client.snapshot().waiting < static_cast<std::uint64_t>(wanted)) {
      io.run_one_for(10ms);
      if (now() > limit) throw std::runtime_error("the waiters do not wait");
    }
    io.run_for(200ms);  // what follows from their coming
  }

  asio::io_context io{1};
  std::string const name = new_name("waiter");
  latchkey::client client;
  latchkey::distributed_lock lock;
  int count = 0;
  int ended = 0;
};

}  // namespace

void run_waiter(stage& on) {
  latchkey::client const holder(on.uri());
  waiters all(on.uri());
  auto const held = holder.get_lock(all.name).acquire();
  all.add(10);
  auto const commands = all.client.snapshot().commands;
  int const timers = kernel_timers();
  std::vector<std::pair<double, double>> memory, cpu;
  double bytes = 0;
  for (int const wanted : {100, 1'000, 10'000, 100'000}) {
    on.say(std::to_string(wanted) + " waiters");
    double const before = allocated_bytes();
    int const had = all.count;
    all.add(wanted);
    bytes = (allocated_bytes() - before) / (wanted - had);
    std::int64_t const used = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    all.io.run_for(1s);
    cpu.emplace_back(wanted, static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - used) * 1e-7);
    memory.emplace_back(wanted, bytes);
  }
  on.add({.name = "memory", .unit = "bytes", .figure = bytes, .most = 1'024});
  on.add({.name = "timers of the kernel for 100,000", .unit = "", .figure = kernel_timers() - timers * 1.0, .most = 0});
  on.add({.name = "commands for 100,000",
          .unit = "",
          .figure = static_cast<double>(all.client.snapshot().commands - commands),
          .most = 0});
  on.draw("cost by waiters", "bytes of a waiter", memory);
  on.draw("cost by waiters", "CPU of all who wait, % of a core", cpu);
  all.client.close();
  while (all.ended < all.count) all.io.run_one_for(10ms);
}

}  // namespace bench
