#include <common/machine_state.hpp>
#include <common/numbers.hpp>
#include <suite/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace bench {

namespace {

using namespace std::chrono_literals;

constexpr std::array<regime, 6> regimes{{
    {"back-to-back", "one pair after the other", 0us, false, 300},
    {"0.2ms", "a pair every 0.2 ms", 200us, false, 300},
    {"2ms", "a pair every 2 ms", 2ms, false, 100},
    {"20ms", "a pair every 20 ms", 20ms, false, 25},
    {"back-to-back-busy", "one pair after the other, all cores busy", 0us, true, 300},
    {"2ms-busy", "a pair every 2 ms, all cores busy", 2ms, true, 100},
}};

}  // namespace

std::span<regime const> all_regimes() { return regimes; }

regime const* find_regime(std::string_view name) {
  auto const found = std::find_if(regimes.begin(), regimes.end(), [&](auto const& one) { return one.name == name; });
  return found == regimes.end() ? nullptr : &*found;
}

namespace {

constexpr double disturbing = 0.10;

}  // namespace

side blocking_side(std::string name, std::function<void()> pair) {
  return {std::move(name), [pair = std::move(pair)](regime const& what) {
            std::int64_t const period = std::chrono::nanoseconds(what.period).count();
            round_times found;
            found.times.reserve(static_cast<std::size_t>(what.pairs));
            std::int64_t const cpu_began = read_clock(CLOCK_PROCESS_CPUTIME_ID);
            for (int i = 0; i < what.pairs; ++i) {
              std::int64_t const began = now();
              pair();
              found.times.push_back(static_cast<double>(now() - began) * 1e-3);
              if (period > 0) sleep_until(began + period);
            }
            found.cpu = static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_began) * 1e-3 / what.pairs;
            return found;
          }};
}

double side_rounds::median_p50() const { return median(p50); }
double side_rounds::median_cpu() const { return median(cpu); }
double side_rounds::p90() const { return quantile(all, 0.9); }

double side_rounds::p99() const { return quantile(all, 0.99); }

double comparison::ratio_p50(std::size_t a, std::size_t b) const { return median(ratios(sides[a].p50, sides[b].p50)); }
double comparison::ratio_cpu(std::size_t a, std::size_t b) const { return median(ratios(sides[a].cpu, sides[b].cpu)); }

std::string comparison::note(std::size_t a, std::size_t b) const {
  auto const all = ratios(sides[a].p50, sides[b].p50);
  double const spread = (quantile(all, 0.75) - quantile(all, 0.25)) / median(all);
  std::string text;
  char part[100];
  if (machine.others > disturbing) {
    std::snprintf(part, sizeof part, "others used %.0f %% of the machine", 100 * machine.others);
    text += part;
  }
  if (machine.stolen > disturbing / 2) {
    std::snprintf(part, sizeof part, "%sthe host took %.0f %%", text.empty() ? "" : "; ", 100 * machine.stolen);
    text += part;
  }
  if (spread > 0.2) text += text.empty() ? "rounds differ much" : "; rounds differ much";
  return text;
}

comparison compare(regime const& what, int rounds, std::vector<side> const& sides, pid_t server) {
  std::optional<busy_cores> busy;
  std::vector<pid_t> ours{server};
  if (what.busy) {
    busy.emplace();
    ours.insert(ours.end(), busy->processes().begin(), busy->processes().end());
  }
  comparison found;
  found.sides.resize(sides.size());
  machine_watch const watch(std::move(ours));
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t k = 0; k < sides.size(); ++k) {
      std::size_t const which = (k + static_cast<std::size_t>(i)) % sides.size();
      auto const one = sides[which].round(what);
      auto& kept = found.sides[which];
      kept.p50.push_back(median(one.times));
      kept.cpu.push_back(one.cpu);
      kept.all.insert(kept.all.end(), one.times.begin(), one.times.end());
    }
  }
  found.machine = watch.used();
  return found;
}

std::vector<std::pair<double, double>> distribution(side_rounds const& of) {
  std::vector<std::pair<double, double>> points;
  for (double const part : {0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999})
    points.emplace_back(quantile(of.all, part), part);
  return points;
}

}  // namespace bench
