// What one more caller costs who waits for a lock that another process has.
#include <common/clocks.hpp>
#include <suite/groups.hpp>
#include <suite/memory.hpp>

#include <latchkey/latchkey.hpp>

#include <boost/asio/io_context.hpp>

#include <stdexcept>

namespace bench {
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
