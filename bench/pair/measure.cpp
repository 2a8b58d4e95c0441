#include <pair/measure.hpp>

#include <common/busy_cores.hpp>
#include <common/clocks.hpp>
#include <common/numbers.hpp>

#include <cstdint>
#include <optional>

namespace bench {
namespace {

// Pairs of one side. Who is late starts the next pair at once, and no lost time is caught up with.
side_result run_round(regime const& what, pair_function const& pair) {
  std::int64_t const period = std::chrono::nanoseconds(what.period).count();
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(what.pairs));
  std::int64_t const thread_began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  std::int64_t const process_began = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < what.pairs; ++i) {
    std::int64_t const began = read_clock(CLOCK_MONOTONIC);
    pair();
    times.push_back(static_cast<double>(read_clock(CLOCK_MONOTONIC) - began) * 1e-3);
    if (period > 0) sleep_until(began + period);
  }
  side_result found;
  found.cpu = static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - process_began) * 1e-3 / what.pairs;
  found.thread_cpu = static_cast<double>(read_clock(CLOCK_THREAD_CPUTIME_ID) - thread_began) * 1e-3 / what.pairs;
  found.p50 = quantile(times, 0.5);
  found.p90 = quantile(times, 0.9);
  return found;
}

template <class Value>
std::vector<double> each(std::vector<side_result> const& rounds, Value value) {
  std::vector<double> values;
  for (auto const& one : rounds) values.push_back(one.*value);
  return values;
}

side_result medians(std::vector<side_result> const& rounds) {
  auto const of = [&](auto value) { return quantile(each(rounds, value), 0.5); };
  return {of(&side_result::p50), of(&side_result::p90), of(&side_result::cpu), of(&side_result::thread_cpu)};
}

std::vector<double> ratios(regime_result const& of, double side_result::*value) {
  std::vector<double> found;
  for (std::size_t i = 0; i < of.bare_rounds.size(); ++i)
    found.push_back(of.latchkey_rounds[i].*value / of.bare_rounds[i].*value);
  return found;
}

}  // namespace

regime_result measure(regime const& what, int rounds, pair_function const& bare, pair_function const& latchkey,
                      std::vector<pid_t> ours) {
  std::optional<busy_cores> busy;
  if (what.busy) {
    busy.emplace();
    ours.insert(ours.end(), busy->processes().begin(), busy->processes().end());
  }
  regime_result found;
  found.of = &what;
  machine_watch const watch(std::move(ours));
  for (int i = 0; i < rounds; ++i) {
    // Neither side is always the one that comes first.
    bool const bare_first = i % 2 == 0;
    if (bare_first) found.bare_rounds.push_back(run_round(what, bare));
    found.latchkey_rounds.push_back(run_round(what, latchkey));
    if (!bare_first) found.bare_rounds.push_back(run_round(what, bare));
  }
  found.machine = watch.used();
  found.bare = medians(found.bare_rounds);
  found.latchkey = medians(found.latchkey_rounds);
  auto const middle = ratios(found, &side_result::p50);
  found.ratio_p50 = quantile(middle, 0.5);
  found.ratio_p90 = quantile(ratios(found, &side_result::p90), 0.5);
  found.spread = (quantile(middle, 0.75) - quantile(middle, 0.25)) / found.ratio_p50;
  return found;
}

}  // namespace bench
