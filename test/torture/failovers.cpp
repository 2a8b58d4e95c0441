#include <interop/support/peer.hpp>
#include <torture/failovers.hpp>
#include <torture/run.hpp>
#include <torture/topology.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

namespace latchkey::torture {

namespace failing_over {

using sets = std::vector<std::unique_ptr<server_set>>;
using number = unsigned long long;

constexpr std::int64_t look_every = 20 * ms, longest_look = 200 * ms;

struct tally {
  number acknowledged = 0, written = 0, untold = 0, refused = 0, failed = 0;
  number lost() const { return acknowledged - written; }
};

tally tally_of(sets const& all, way how) {
  tally made;
  for (auto const& set : all)
    for (auto const& one : set->counted().of[static_cast<std::size_t>(how)]) {
      made.written += one.value();
      made.acknowledged += one.acknowledged;
      made.untold += one.untold;
      made.refused += one.refused;
      made.failed += one.failed;
    }
  return made;
}

std::map<std::string, int> struck(sets const& all) {
  std::map<std::string, int> made;
  for (auto const& one : all)
    for (auto const& [name, count] : one->struck()) made[name] += count;
  return made;
}

int failovers(std::map<std::string, int> const& counts) {
  int made = 0;
  for (std::uint32_t i = 0; i < mishaps; ++i)
    if (auto const what = static_cast<mishap>(i); replaces(what))
      if (auto const found = counts.find(name_of(what)); found != counts.end()) made += found->second;
  return made;
}

void show(sets const& all, std::int64_t began) {
  number sections = 0, updates = 0;
  for (auto const& one : all) sections += one->sections();
  for (std::size_t w = 0; w < ways; ++w) updates += tally_of(all, static_cast<way>(w)).acknowledged;
  auto const seconds = static_cast<unsigned>((now() - began) / second);
  auto const counts = struck(all);
  std::printf("[%2u:%02u] %d failovers, %llu sections, %llu updates; %s\n", seconds / 60, seconds % 60,
              failovers(counts), sections, updates, in_words(counts).c_str());
  std::fflush(stdout);
}

void add(verdict& sum, verdict const& one) {
  sum.sections += one.sections;
  sum.violations += one.violations;
  sum.lost_reported += one.lost_reported;
  sum.lost_unreported += one.lost_unreported;
  sum.hung += one.hung;
  sum.leaked += one.leaked;
  sum.late += one.late;
  sum.storm += one.storm;
  sum.starved += one.starved;
  sum.documented += one.documented;
  sum.refused += one.refused;
  for (auto const& [name, count] : one.of_kind) sum.of_kind[name] += count;
}

struct row {
  way how;
  std::string what;
  bool promised;  // that nothing is lost
};

std::vector<row> rows(options const& run) {
  std::vector<row> made{{way::none, "min_synced_replicas 0", false},
                        {way::one, "min_synced_replicas 1", false},
                        {way::all, "min_synced_replicas -1 (all)", true},
                        {way::quarantine, "0, quarantine of " + std::to_string(run.quarantine.count()) + " ms", false},
                        {way::token, "0, the fencing token is checked", true}};
  if (run.redisson) made.push_back({way::redisson, "Redisson, as it comes", false});
  return made;
}

// False: what is promised to lose nothing has.
bool tell_updates(options const& run, sets const& all, int failovers) {
  std::printf(
      "\nNumbers read and written back under a lock, by who still holds it, in sections of up to 20 ms and some of\n"
      "%.1f s; a failover strikes %s of the %zu numbers of each row:\n",
      static_cast<double>(run.lease.count()) * 0.0025, run.topology == "cluster" ? "1" : "all", counters);
  std::printf("  %-34s %9s %6s %15s %10s %8s %8s\n", "", "updates", "lost", "per 1,000 fail.", "loss told", "refused",
              "in vain");
  bool good = true;
  for (auto const& [how, what, promised] : rows(run)) {
    auto const found = tally_of(all, how);
    std::printf("  %-34s %9llu %6llu %15.1f %10llu %8llu %8llu\n", what.c_str(), found.acknowledged, found.lost(),
                failovers == 0 ? 0 : static_cast<double>(found.lost()) * 1'000 / failovers, found.untold, found.refused,
                found.failed);
    if (promised && (found.lost() != 0 || found.acknowledged == 0)) good = false;
  }
  return good;
}

void tell_not_run(options const& run) {
  std::printf(
      "Not run: %stwo failovers at a time, clocks that differ, links between clients and servers that are cut for\n"
      "longer than a moment%s.\n",
      run.redisson ? "" : "Redisson (--redisson); ",
      run.topology == "cluster" ? "" : "; slots, FORCE and TAKEOVER (--topology cluster has them)");
}

bool tell(options const& run, sets const& all, std::string const& folder) {
  auto const counts = struck(all);
  verdict sum;
  int uninvited = 0;
  std::size_t troubles = 0;
  for (auto const& one : all) {
    add(sum, one->found());
    uninvited += one->uninvited();
    troubles += one->troubles().size();
    for (auto const& line : one->found().findings) std::printf("%s\n", line.c_str());
    for (auto const& line : one->troubles()) std::printf("SERVERS: %s\n", line.c_str());
    for (auto const& line : one->losses()) std::printf("%s\n", line.c_str());
  }
  std::printf("%d failovers: %s; %d uninvited\n", failovers(counts), in_words(counts).c_str(), uninvited);
  std::string kinds;
  for (auto const& [name, count] : sum.of_kind) kinds += " " + name + " " + std::to_string(count);
  std::printf("sections by kind:%s\nacquires that were refused or failed: %llu; findings that are documented: %llu\n",
              kinds.c_str(), static_cast<number>(sum.refused), static_cast<number>(sum.documented));
  bool const kept = tell_updates(run, all, failovers(counts));
  tell_not_run(run);
  bool const good = sum.good() && kept && troubles == 0 && failovers(counts) > 0 && sum.sections > 0;
  if (good && !run.keep)
    std::filesystem::remove_all(folder);
  else
    std::printf(
        "The histories are in %s/set-*\n  in words:  scripts/torture --show FOLDER\n"
        "  again:     scripts/torture --check FOLDER --topology %s --synced %d\n",
        folder.c_str(), run.topology.c_str(), run.synced);
  std::printf("failovers=%d %s documented=%llu\n", failovers(counts), sum.last_line().c_str(),
              static_cast<number>(sum.documented));
  return good;
}

}  // namespace failing_over

int run_failovers(options const& run) {
  using namespace failing_over;
  if (run.redisson && !test::redisson_is_built()) {
    std::fprintf(stderr, "scripts/torture: test/interop/build-driver has not been run\n");
    return 2;
  }
  auto const folder = new_folder();
  keep_servers_in_memory();
  std::printf("%s\nhistories: %s\n", command_for(run).c_str(), folder.c_str());
  std::fflush(stdout);
  agreement with;
  sets all;
  std::atomic<int> playing{run.sets};
  for (int i = 0; i < run.sets; ++i)
    all.push_back(std::make_unique<server_set>(run, folder + "/set-" + std::to_string(i), i, with));
  {
    std::vector<std::jthread> threads;
    for (auto const& one : all)
      threads.emplace_back([&] {
        one->play();
        --playing;
      });
    auto const began = now();
    auto const length = static_cast<std::int64_t>(run.minutes * 60e9);
    auto next = began;
    for (auto last = began; playing > 0; last = now()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(look_every));
      if (now() - last > longest_look)
        for (auto const& one : all) one->note_stall(last, now());
      if (now() - began > length || asked_to_end()) with.over = true;
      if (now() < next) continue;
      show(all, began);
      next = now() + (now() - began < 60 * second ? 5 : 30) * second;
    }
    show(all, began);
  }
  return tell(run, all, folder) ? 0 : 1;
}

}  // namespace latchkey::torture
