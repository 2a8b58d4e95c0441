#include "run_row.hpp"

#include "processes.hpp"
#include "redis.hpp"
#include "server_commands.hpp"
#include "shop.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

namespace demo {
namespace {

using namespace std::chrono_literals;

constexpr auto redraw = 100ms;
constexpr std::int64_t second_ns = 1'000'000'000;
// Rows that are not recipes are not cut off; this only ends what would hang.
constexpr std::int64_t hang_limit_s = 60;
// How long requests may take to notice that the time is over.
constexpr std::int64_t grace_ns = 10 * second_ns;
constexpr std::int64_t connect_limit_ns = 30 * second_ns;

void describe(job& all, options const& wanted, row const& chosen, private_server const& server) {
  all.row = static_cast<std::uint32_t>(*find_row(chosen.name));
  all.processes = static_cast<std::uint32_t>(wanted.processes);
  all.concurrency = static_cast<std::uint32_t>(wanted.concurrency);
  all.think_us = wanted.think_us;
  auto const limit_s = chosen.how == way::recipe ? wanted.limit_s : std::max(wanted.limit_s, hang_limit_s);
  all.limit_ns = limit_s * second_ns;
  auto const& path = server.socket_path();
  std::copy(path.begin(), path.end(), all.socket_path.begin());
}

// False: a worker ended instead, or they took too long.
bool wait_until_ready(processes& workers, signals const& bell) {
  auto const limit = now_ns() + connect_limit_ns;
  auto const all = workers.running();
  while (!workers.all_ready()) {
    bell.wait(5ms);
    workers.collect();
    if (workers.running() < all || now_ns() > limit) return false;
  }
  return true;
}

void wait_until_over(shared_job const& shared, processes& workers, signals const& bell, progress& shown) {
  while (workers.running() > 0 && now_ns() < shared->deadline_ns() + grace_ns) {
    shown.update(shared->done.load(), shared->requests);
    bell.wait(redraw);
    workers.collect();
  }
  workers.kill_all();
}

void add_worker_records(row_result& result, job const& all) {
  for (std::size_t i = 0; i < all.processes; ++i) {
    auto const& worker = all.workers[i];
    result.cpu_ms += static_cast<double>(worker.cpu_us) / 1e3;
    if (result.error.empty() && worker.has_error.load()) result.error = worker.error.data();
  }
}

}  // namespace

row_result run_row(options const& wanted, row const& chosen, private_server const& server, signals const& bell,
                   progress& shown) {
  row_result result;
  result.name = chosen.name;
  result.label = chosen.label;
  result.how = chosen.how;

  redis control(server.socket_path());
  control.flush();
  control.set_number(stock_key, wanted.stock);

  shared_job const shared(static_cast<std::uint32_t>(wanted.requests));
  describe(*shared, wanted, chosen, server);
  processes workers(shared);
  shown.begin(chosen);
  bool const ready = wait_until_ready(workers, bell);
  if (ready) {
    control.reset_statistics();
    shared->go_ns = now_ns();
    workers.go();
    wait_until_over(shared, workers, bell, shown);
  } else {
    workers.kill_all();
  }

  result.stock_fell = wanted.stock - control.get_number(stock_key);
  result.commands = ready ? commands_of_clients(control.command_statistics(), chosen.how) : 0;
  auto const over_ns = ready ? std::min(now_ns(), shared->deadline_ns()) : shared->go_ns;
  summarise_requests(result, shared.requests(), shared->go_ns, over_ns, shared->deadline_ns());
  add_worker_records(result, *shared);
  if (result.error.empty()) result.error = workers.trouble();
  if (result.error.empty() && !ready) result.error = "the workers could not connect in time";
  shown.end(result);
  return result;
}

int connections_needed(options const& wanted) {
  constexpr std::int64_t spare = 64;
  // A latchkey client has at most three connections.
  return static_cast<int>(wanted.concurrency + 4 * wanted.processes + spare);
}

void raise_file_limit(options const& wanted) {
  // The server needs some for itself beside those of its clients.
  auto const needed = static_cast<rlim_t>(connections_needed(wanted) + 64);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    throw std::runtime_error("this system allows " + std::to_string(limit.rlim_max) +
                             " open files, and --concurrency " + std::to_string(wanted.concurrency) + " needs " +
                             std::to_string(needed));
  }
  limit.rlim_cur = needed;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace demo
