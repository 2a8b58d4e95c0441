#include "options.hpp"
#include "private_cluster.hpp"
#include "private_server.hpp"
#include "processes.hpp"
#include "redis.hpp"
#include "report.hpp"
#include "worker.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace demo {

namespace {

using namespace std::string_view_literals;

constexpr std::array not_from_clients{"del"sv, "exists"sv, "hdel"sv, "hexists"sv, "hget"sv, "hincrby"sv, "hset"sv,
                                      "pexpire"sv, "pttl"sv, "publish"sv, "spublish"sv, "info"sv, "config|resetstat"sv,
                                      // of the replicas
                                      "psync"sv, "replconf"sv};

bool from_client(std::string_view command) {
  return std::find(not_from_clients.begin(), not_from_clients.end(), command) == not_from_clients.end();
}

}  // namespace

/// How many commands clients sent in a row, from what `INFO commandstats` says at its end.
///
/// The server counts what scripts call among the rest. Commands that only scripts call here are left out; the recipe's
/// script calls GET once, as requests do, so that one GET is taken off for each EVAL. What the demo itself asks is
/// left out too. The one GET and one SET of each request for the stock are counted, in every row.
std::int64_t commands_of_clients(std::string_view command_statistics, way how) {
  constexpr auto prefix = "cmdstat_"sv;
  constexpr auto calls_mark = ":calls="sv;
  std::int64_t total = 0;
  std::int64_t evals = 0;
  while (!command_statistics.empty()) {
    auto const end = command_statistics.find('\n');
    auto const line = command_statistics.substr(0, end);
    command_statistics.remove_prefix(end == std::string_view::npos ? command_statistics.size() : end + 1);

    auto const mark = line.find(calls_mark);
    if (!line.starts_with(prefix) || mark == std::string_view::npos) continue;
    auto const command = line.substr(prefix.size(), mark - prefix.size());
    auto const digits = line.substr(mark + calls_mark.size());
    std::int64_t calls = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), calls);
    if (from_client(command)) total += calls;
    if (command == "eval") evals = calls;
  }
  return how == way::recipe ? total - evals : total;
}

namespace {

using namespace std::chrono_literals;

constexpr auto redraw = 100ms;
constexpr auto look = 1ms;
constexpr std::int64_t second_ns = 1'000'000'000;
// Rows that are not recipes are not cut off; this only ends what would hang.
constexpr std::int64_t hang_limit_s = 60;
// How long requests may take to notice that the time is over.
constexpr std::int64_t grace_ns = 10 * second_ns;
constexpr std::int64_t connect_limit_ns = 30 * second_ns;

// Where the stock is, and where the lock is: there, too, unless it is in a cluster.
struct place {
  private_server const& stock;
  std::optional<private_cluster> cluster{};

  std::string locks() const { return cluster ? cluster->uri() : stock.uri(); }
  std::vector<std::string> sockets() const {
    std::vector<std::string> all{stock.socket_path()};
    if (cluster)
      for (auto const& master : cluster->masters()) all.push_back(master);
    return all;
  }
};

void describe(job& all, options const& wanted, row const& chosen, place const& where) {
  all.row = static_cast<std::uint32_t>(*find_row(chosen.name));
  all.processes = static_cast<std::uint32_t>(wanted.processes);
  all.concurrency = static_cast<std::uint32_t>(wanted.concurrency);
  all.think_us = wanted.think_us;
  auto const limit_s = chosen.how == way::recipe ? wanted.limit_s : std::max(wanted.limit_s, hang_limit_s);
  all.limit_ns = limit_s * second_ns;
  auto const& path = where.stock.socket_path();
  std::copy(path.begin(), path.end(), all.socket_path.begin());
  auto const locks = where.locks();
  if (locks.size() >= all.locks.size()) throw std::runtime_error("too long a URI: " + locks);
  std::copy(locks.begin(), locks.end(), all.locks.begin());
  all.synced = wanted.locks == lock_place::failing_cluster;
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

// `in_the_middle` is called when half of the requests are done.
void wait_until_over(shared_job const& shared, processes& workers, signals const& bell, progress& shown,
                     std::function<void()> in_the_middle) {
  while (workers.running() > 0 && now_ns() < shared->deadline_ns() + grace_ns) {
    shown.update(shared->done.load(), shared->requests);
    bell.wait(in_the_middle ? look : redraw);
    workers.collect();
    if (in_the_middle && 2 * shared->done.load() >= shared->requests && workers.running() > 0)
      std::exchange(in_the_middle, nullptr)();
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

/// Runs one row on an empty server.
/// \throws interrupted, std::exception if the demo itself cannot work
row_result run_row(options const& wanted, row const& chosen, place where, signals const& bell, progress& shown) {
  row_result result;
  result.name = chosen.name;
  result.label = chosen.label;
  result.how = chosen.how;

  redis control(where.stock.socket_path());
  control.flush();
  control.set_number(stock_key, wanted.stock);

  shared_job const shared(static_cast<std::uint32_t>(wanted.requests));
  describe(*shared, wanted, chosen, where);
  processes workers(shared);
  shown.begin(chosen);
  std::function<void()> half_way;
  if (wanted.locks == lock_place::failing_cluster && is_latchkey(chosen.how))
    half_way = [&] {
      where.cluster->kill_master_of(lock_key);
      result.master_killed = true;
    };
  bool const ready = wait_until_ready(workers, bell);
  if (ready) {
    for (auto const& socket : where.sockets()) redis(socket).reset_statistics();
    shared->go_ns = now_ns();
    workers.go();
    wait_until_over(shared, workers, bell, shown, half_way);
  } else {
    workers.kill_all();
  }

  result.stock_fell = wanted.stock - control.get_number(stock_key);
  for (auto const& socket : where.sockets())
    if (ready) result.commands += commands_of_clients(redis(socket).command_statistics(), chosen.how);
  auto const over_ns = ready ? std::min(now_ns(), shared->deadline_ns()) : shared->go_ns;
  summarise_requests(result, shared.requests(), shared->go_ns, over_ns, shared->deadline_ns());
  add_worker_records(result, *shared);
  if (result.error.empty()) result.error = workers.trouble();
  if (result.error.empty() && !ready) result.error = "the workers could not connect in time";
  if (result.error.empty() && half_way && !result.master_killed)
    result.error = "it was over before a master was killed";
  shown.end(result);
  return result;
}

/// How many connections the server must take.
int connections_needed(options const& wanted) {
  constexpr std::int64_t spare = 64;
  // A latchkey client has at most three connections.
  return static_cast<int>(wanted.concurrency + 4 * wanted.processes + spare);
}

/// Lets this process and those it starts have enough open files.
/// \throws std::runtime_error if the system allows too few
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

namespace {

std::vector<demo::row> chosen_rows(demo::options const& wanted) {
  std::vector<demo::row> rows;
  for (auto const& row : demo::all_rows()) {
    bool const named = std::find(wanted.only.begin(), wanted.only.end(), row.name) != wanted.only.end();
    bool const can_be = wanted.locks == demo::lock_place::with_stock || demo::can_lock_in_cluster(row.how);
    if (named || (wanted.only.empty() && can_be)) rows.push_back(row);
  }
  return rows;
}

std::string_view where_the_lock_is(demo::lock_place place) {
  switch (place) {
    case demo::lock_place::with_stock: return "";
    case demo::lock_place::cluster: return "The lock is in a private Redis Cluster of three masters.\n";
    case demo::lock_place::failing_cluster: break;
  }
  return "The lock is in a private Redis Cluster; its master is killed in the middle of each row.\n";
}

void introduce(demo::options const& wanted) {
  std::cout << "Flash sale: " << wanted.processes << (wanted.processes == 1 ? " process has" : " processes share")
            << " a stock of " << wanted.stock << " in a private redis-server;\n"
            << wanted.concurrency << " requests at a time, " << wanted.requests
            << " in all, each reads the stock, thinks " << wanted.think_us << " us and writes it back.\n"
            << where_the_lock_is(wanted.locks) << "\n"
            << std::flush;
}

int run(demo::options const& wanted) {
  demo::signals const bell;
  demo::raise_file_limit(wanted);
  std::ofstream json;
  if (!wanted.json.empty()) {
    // Opened first: a minute of work must not end at a name that cannot be written.
    json.open(wanted.json);
    if (!json) throw demo::bad_option("--json: cannot write '" + wanted.json + "'");
  }
  introduce(wanted);
  demo::private_server const server(demo::connections_needed(wanted));

  auto const rows = chosen_rows(wanted);
  demo::progress shown(::isatty(STDOUT_FILENO) == 1, rows.size());
  std::vector<demo::row_result> results;
  try {
    for (auto const& row : rows) {
      demo::place where{server};
      if (wanted.locks != demo::lock_place::with_stock)
        where.cluster.emplace(wanted.locks == demo::lock_place::failing_cluster, demo::connections_needed(wanted));
      results.push_back(demo::run_row(wanted, row, std::move(where), bell, shown));
    }
  } catch (...) {
    shown.clear();
    throw;
  }

  std::cout << "\n"
            << demo::result_table(results) << "\n"
            << demo::table_notes(results) << "\n"
            << demo::conclusion(results) << std::endl;
  if (json.is_open() && !(json << demo::to_json(wanted, results) << std::flush)) {
    throw std::runtime_error("cannot write " + wanted.json);
  }
  return std::all_of(results.begin(), results.end(), demo::row_is_good) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int bad_option_status = 2;
  std::vector<std::string> const arguments(argv + 1, argv + argc);
  // How the demo starts itself for its worker processes; not for people.
  if (arguments.size() == 2 && arguments[0] == "--worker") {
    return demo::run_worker(static_cast<std::uint32_t>(std::stoul(arguments[1])));
  }
  try {
    auto const wanted = demo::parse_options(arguments);
    if (wanted.help) {
      std::cout << demo::help_text();
      return EXIT_SUCCESS;
    }
    return run(wanted);
  } catch (demo::bad_option const& error) {
    std::cerr << "latchkey_demo: " << error.what() << "\nSee latchkey_demo --help.\n";
    return bad_option_status;
  } catch (demo::interrupted const& signal) {
    std::cerr << "latchkey_demo: interrupted\n";
    return 128 + signal.signal_number;
  } catch (std::exception const& error) {
    std::cerr << "latchkey_demo: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
