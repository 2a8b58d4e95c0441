#include <simulation/options.hpp>
#include <simulation/scale.hpp>
#include <simulation/traces.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string_view>

namespace {

using namespace latchkey::simulation;
using wall = std::chrono::steady_clock;

constexpr unsigned most_failures = 10;

double seconds_since(wall::time_point began) { return std::chrono::duration<double>(wall::now() - began).count(); }

struct figures {
  std::uint64_t seeds = 0, steps = 0, calls = 0, violations = 0;
  std::array<std::uint64_t, std::size(eye_names)> seen{};
};

// Of the violations, those that each eye has seen.
std::string seen_by_each(figures const& sum) {
  std::string made;
  for (std::size_t i = 1; i < sum.seen.size(); ++i)
    made += " " + std::string(eye_names[i]) + "=" + std::to_string(sum.seen[i]);
  return made;
}

void progress(figures const& so_far, double seconds) {
  auto const whole = static_cast<unsigned>(seconds);
  std::printf("[%2u:%02u] %llu seeds, %.0f per second, %llu violations\n", whole / 60, whole % 60,
              static_cast<unsigned long long>(so_far.seeds), static_cast<double>(so_far.seeds) / seconds,
              static_cast<unsigned long long>(so_far.violations));
  std::fflush(stdout);
}

// Who connects and who is there says nothing about locks.
bool worth_telling(std::string const& line) {
  for (char const* noise :
       {": PING", ": ROLE", ": INFO server", ": CLIENT INFO", ": CLIENT LIST", "9223372036854775807"})
    if (line.find(noise) != std::string::npos) return false;
  return true;
}

void tell(verdict_of_run const& run) {
  for (auto const& line : run.told)
    if (worth_telling(line)) std::printf("  %s\n", line.c_str());
  std::printf("  => %s\n", run.broken ? run.broken->c_str() : "no rule is broken");
}

void report(run_options const& run, verdict_of_run const& end, lua_scripts& scripts, bool shrinks) {
  std::printf("\nVIOLATION, seed %llu, kind %s: %s\n  play it again: %s --trace\n",
              static_cast<unsigned long long>(run.seed), run.kind->name.c_str(), end.broken->c_str(),
              command_for(run).c_str());
  if (!shrinks) {
    std::printf("  shorten it:    %s --shrink\n", command_for(run).c_str());
    return;
  }
  shrunk shorter;
  shrink(run, scripts, shorter);
  shorter.options.trace = true;
  auto const last = play(shorter.options, scripts);
  std::printf("  shortened from %zu to %zu moves in %llu runs: %s --trace\n", end.moves.size(), shorter.moves.size(),
              static_cast<unsigned long long>(shorter.tried), command_for(shorter.options).c_str());
  tell(last);
}

// Keeps what runs did, or holds it against what was kept.
class traces {
 public:
  explicit traces(options& given) {
    if (!given.compare.empty()) {
      recorded_.emplace(given.compare);
      recorded_->read_runs(given);
    }
    if (!given.record.empty()) record_.emplace(given.record, given);
  }

  void look_at(run_options const& run, std::vector<std::uint32_t> const& steps) {
    if (record_) record_->add(steps);
    auto const step = recorded_ ? recorded_->first_difference(steps) : std::nullopt;
    if (!step) return;
    if (differ_++ == 0)
      std::printf("\nDIFFERENT, seed %llu, kind %s, from step %zu on\n  play it again: %s --trace\n",
                  static_cast<unsigned long long>(run.seed), run.kind->name.c_str(), *step, command_for(run).c_str());
  }

  // True if nothing differs.
  bool end(std::uint64_t seeds) {
    if (record_) record_->close();
    if (recorded_)
      std::printf("compared=%llu different=%llu\n", static_cast<unsigned long long>(seeds),
                  static_cast<unsigned long long>(differ_));
    return differ_ == 0;
  }

 private:
  std::optional<trace_writer> record_;
  std::optional<trace_reader> recorded_;
  std::uint64_t differ_ = 0;
};

int simulate(options& given) {
  traces kept(given);
  lua_scripts scripts;
  figures sum;
  auto const began = wall::now();
  double next_report = 5;
  for (std::uint64_t i = 0;; ++i) {
    double const seconds = seconds_since(began);
    if (given.minutes > 0 ? seconds >= given.minutes * 60 : i >= given.seeds) break;
    if (seconds >= next_report) {
      progress(sum, seconds);
      next_report = seconds < 60 ? next_report + 5 : seconds + 60;
    }
    auto const run = run_of(given, *given.kinds[i % given.kinds.size()], given.seed + i);
    auto const end = play(run, scripts);
    ++sum.seeds;
    sum.steps += end.steps;
    sum.calls += end.calls;
    if (given.trace) tell(end);
    kept.look_at(run, end.step_by_step);
    if (!end.broken) continue;
    ++sum.seen[static_cast<std::size_t>(end.by)];
    report(run, end, scripts, given.shrink && sum.violations == 0);
    if (++sum.violations == most_failures) {
      std::printf("\nThat is enough: the other seeds are not played.\n");
      break;
    }
  }
  double const seconds = seconds_since(began);
  double const core = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf("seeds=%llu steps=%llu calls=%llu violations=%llu%s seconds=%.1f seeds_per_second_of_one_core=%.0f\n",
              static_cast<unsigned long long>(sum.seeds), static_cast<unsigned long long>(sum.steps),
              static_cast<unsigned long long>(sum.calls), static_cast<unsigned long long>(sum.violations),
              seen_by_each(sum).c_str(), seconds, static_cast<double>(sum.seeds) / core);
  bool const same = kept.end(sum.seeds);
  return sum.violations == 0 && same ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && words[1] == std::string_view("--scale")) return latchkey::scale::run(count - 1, words + 1);
  options given;
  if (auto const code = read_options(count, words, given)) return *code;
  try {
    return simulate(given);
  } catch (std::runtime_error const& error) {
    std::fprintf(stderr, "scripts/simulate: %s\n", error.what());
    return 2;
  }
}
