#include <boost/json.hpp>
#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/json.hpp>
#include <base/say.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <options/connection.hpp>
#include <random>
#include <subcommands.hpp>
#include <thread>
#include <vector>

namespace latchkey::tool {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr milliseconds lease_of_pair{10'000};
// The names are ours: only a server that refuses, or does not answer, is waited for.
constexpr milliseconds longest_refusal{3'000};

struct measured {
  std::vector<std::int64_t> pairs;  // microseconds, of one acquire and its release
  std::exception_ptr failed;
};

void measure(distributed_lock const& lock, clock::time_point end, measured& into) try {
  while (clock::now() < end) {
    auto const began = clock::now();
    if (!lock.try_lock(longest_refusal, lease_of_pair))
      throw failure(still_busy, "somebody else uses " + quoted(lock.name()));
    lock.unlock();
    into.pairs.push_back(std::chrono::duration_cast<microseconds>(clock::now() - began).count());
  }
} catch (...) {
  into.failed = std::current_exception();
}

std::string random_name() {
  std::random_device source;
  return "latchkey-bench:" + std::to_string(source()) + std::to_string(source());
}

void print(std::vector<std::int64_t> pairs, double seconds, bool as_json) {
  if (pairs.empty()) throw failure(unavailable, "not one pair in the time that was given");
  std::sort(pairs.begin(), pairs.end());
  auto const p50 = pairs[pairs.size() / 2];
  auto const p99 = pairs[pairs.size() * 99 / 100];
  auto const rate = static_cast<std::int64_t>(static_cast<double>(pairs.size()) / seconds);
  if (as_json) {
    boost::json::object const made{
        {"schema", 1}, {"pairs", pairs.size()}, {"pairs_per_s", rate}, {"p50_us", p50}, {"p99_us", p99}};
    std::puts(json_text(made).c_str());
  } else {
    std::printf("%lld pairs/s  p50 %lld us  p99 %lld us\n", static_cast<long long>(rate), static_cast<long long>(p50),
                static_cast<long long>(p99));
  }
}

}  // namespace

int bench(command_line const& line) {
  auto const duration = line.duration("duration", milliseconds(3'000), milliseconds(1));
  if (duration == forever) throw failure(wrong_usage, "--duration has an end");
  auto const threads = line.number("threads", 1, 256).value_or(1);
  auto server = connection_of(line);
  client const from(server.uri, std::move(server.settings));
  from.connect();
  auto const name = random_name();
  std::vector<measured> all(static_cast<std::size_t>(threads));
  auto const began = clock::now();
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < all.size(); ++i)
      running.emplace_back(
          [&, lock = from.get_lock(name + ':' + std::to_string(i)), i] { measure(lock, began + duration, all[i]); });
  }
  auto const seconds = std::chrono::duration<double>(clock::now() - began).count();
  std::vector<std::int64_t> pairs;
  for (auto const& one : all) {
    if (one.failed) std::rethrow_exception(one.failed);
    pairs.insert(pairs.end(), one.pairs.begin(), one.pairs.end());
  }
  print(std::move(pairs), seconds, line.has("json"));
  return yes;
}

}  // namespace latchkey::tool
