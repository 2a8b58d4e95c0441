#include <support/command_line.hpp>
#include <torture/kinds.hpp>
#include <torture/nemesis.hpp>
#include <torture/options.hpp>
#include <torture/topology.hpp>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace latchkey::torture {

namespace {

constexpr char const* help = R"(Usage: scripts/torture [OPTION...]

Worker processes take and release locks on real redis-servers through proxies, while nemeses kill and stop processes,
cut connections, restart servers and more. Every process writes its history; a checker then looks for whatever
docs/reliability.md says must not be there.

  --minutes M       how long (default 1; a fraction is allowed); SIGTERM ends a run early, with its judgement
  --kind K,...|all  which kinds of locks, all at the same time (default all). Kinds: %s
  --processes P     worker processes, 1 to 32 (default 4; 3 behind --topology)
  --nemesis N,...|all|none
                    what goes wrong (default all). Nemeses:
%s  --seed S          what goes wrong when, and who asks for what, follows from it (default 1). The scheduler of the
                    system does not, so a seed finds the same again often, and not always
  --lease MS        the time of the watchdog; other times follow from it (default 1000; 2000 behind --topology)
  --broken early|ignore|slow
                    makes the workers release before their work is done, or now and then not ask for the lock, or
                    hear of an answer seconds late: the checker must find it
  --keep            keep the histories of a run without findings too
  --check FOLDER    check the histories of an earlier run again; of one with failovers beside its --topology and --synced
  --show FOLDER     tell these histories in words, in the order of time
  --experiment pauses
                    lost updates of a register under a lease of 2 s, when processes are paused every 5 s: the bare
                    lock, the lock with lost() checked before the write, and fencing tokens
  --topology sentinel|cluster
                    instead of one server: a master, two replicas and three sentinels, or three masters with a replica
                    each. A master after the other is replaced, one failover at a time: it is asked to, killed,
                    stopped, cut off from its replicas, or not asked (FORCE, TAKEOVER); masters stand still for less
                    than it takes to be replaced, sentinels are stopped, slots move, connections are cut. Histories as
                    above, and counters that are read and written back under locks of several settings
  --mishap M,...|all
                    what befalls these servers (default all): %s
  --failovers N     ends when so many have been, or after --minutes if that stands behind (default: no limit)
  --sets N          so many sets of servers at the same time (default 1)
  --synced N|all    min_synced_replicas of the histories (default all)
  --quarantine MS   failover_quarantine of one kind of counters, which have half the lease (default: that lease and
                    2.5 s, in a cluster 0.5 s)
  --rest MS         most time between two failovers of a set (default: two leases, in a cluster half of one)
  --redisson        counts with Redisson, too, on the same servers (test/interop/build-driver builds its driver)
  --help

The last line of a run gives the figures: also calls that ended more than a second late (late), clients that connect to
a sick server without end (storm), and processes that wait while another one alone has its turns (starved). A run with
findings keeps its histories and says where. Exit code: 0 nothing was found; 1 something was, but for reported losses;
2 wrong usage.
)";

bool read_kinds(std::string_view word, options& out) {
  out.kinds.clear();
  auto const& all = torture_kinds();
  for (auto const& name : test::between_commas(word)) {
    auto const before = out.kinds.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (name == "all" || name == all[i].name) out.kinds.push_back(static_cast<std::uint8_t>(i));
    if (out.kinds.size() == before) return false;
  }
  return !out.kinds.empty();
}

bool read_nemeses(std::string_view word, options& out) {
  out.nemeses.clear();
  for (auto const& name : test::between_commas(word)) {
    if (name == "none") continue;
    auto const before = out.nemeses.size();
    for (auto const& one : nemesis_names())
      if (name == "all" || name == one) out.nemeses.push_back(one);
    if (out.nemeses.size() == before) return false;
  }
  return true;
}

bool read_broken(std::string_view word, options& out) {
  out.broken = word == "early" ? broken::early : word == "slow" ? broken::slow : broken::ignore;
  return word == "early" || word == "ignore" || word == "slow";
}

std::vector<std::string> mishap_names() {
  std::vector<std::string> made;
  for (std::uint32_t i = 0; i < mishaps; ++i) made.push_back(name_of(static_cast<mishap>(i)));
  return made;
}

bool read_mishaps(std::string_view word, options& out) {
  out.mishaps.clear();
  if (word == "all") return true;
  auto const all = mishap_names();
  out.mishaps = test::between_commas(word);
  return !out.mishaps.empty() && std::all_of(out.mishaps.begin(), out.mishaps.end(), [&](auto const& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  });
}

char const* name_of(broken how) { return how == broken::early ? "early" : how == broken::slow ? "slow" : "ignore"; }

bool read_lease(std::string_view word, options& out) {
  std::int64_t count = 0;
  out.lease = milliseconds(test::read_number(word, count) ? count : 0);
  return out.lease.count() >= 100 && out.lease.count() <= 60'000;
}

// As published for etcd: leases of 2 s and five processes.
bool read_experiment(std::string_view word, options& out) {
  out.pauses = word == "pauses";
  out.lease = milliseconds(2'000);
  out.processes = 5;
  read_kinds("lock", out);
  return out.pauses;
}

// Leases are long enough to outlive a failover, often.
bool read_topology(std::string_view word, options& out) {
  out.topology = word;
  out.lease = milliseconds(2'000);
  out.processes = 3;
  return word == "sentinel" || word == "cluster";
}

bool read_synced(std::string_view word, options& out) {
  if (word == "all") word = "-1";
  return test::read_number(word, out.synced) && out.synced >= -1;
}

bool read_time(std::string_view word, milliseconds& out) {
  std::int64_t count = 0;
  bool const is_one = test::read_number(word, count) && count > 0;
  out = milliseconds(count);
  return is_one;
}

std::string joined(std::vector<std::string> const& words) {
  std::string made;
  for (auto const& one : words) made += (made.empty() ? "" : ",") + one;
  return made.empty() ? "none" : made;
}

std::string kind_names(options const& run) {
  if (run.kinds.size() == torture_kinds().size()) return "all";
  std::vector<std::string> names;
  for (auto kind : run.kinds) names.push_back(torture_kinds()[kind].name);
  return joined(names);
}

std::string synced_text(options const& run) { return run.synced < 0 ? "all" : std::to_string(run.synced); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void print_help() {
  std::vector<std::string> kinds;
  for (auto const& one : torture_kinds()) kinds.push_back(one.name);
  std::string faults;
  for (auto const& name : nemesis_names()) {
    auto shown = name;
    shown.resize(14, ' ');
    faults += "                      " + shown + nemesis_about(name) + "\n";
  }
  std::printf(help, joined(kinds).c_str(), faults.c_str(), joined(mishap_names()).c_str());
}

}  // namespace

std::optional<int> read_options(int count, char const* const* words, options& out) {
  read_kinds("all", out);
  read_nemeses("all", out);
  test::command_line all("scripts/torture");
  all.value("--minutes", [&](auto word) { return test::read_number(word, out.minutes) && out.minutes > 0; })
      .value("--kind", [&](auto word) { return read_kinds(word, out); })
      .number("--processes", out.processes, 1, static_cast<int>(most_processes))
      .value("--nemesis", [&](auto word) { return read_nemeses(word, out); })
      .number("--seed", out.seed)
      .value("--lease", [&](auto word) { return read_lease(word, out); })
      .value("--broken", [&](auto word) { return read_broken(word, out); })
      .text("--check", out.check)
      .text("--show", out.show)
      .value("--experiment", [&](auto word) { return read_experiment(word, out); })
      .value("--topology", [&](auto word) { return read_topology(word, out); })
      .value("--mishap", [&](auto word) { return read_mishaps(word, out); })
      .value("--failovers",
             [&](auto word) {
               out.minutes = 24 * 60;
               return test::read_number(word, out.failovers) && out.failovers > 0;
             })
      .number("--sets", out.sets, 1, 32)
      .value("--synced", [&](auto word) { return read_synced(word, out); })
      .value("--quarantine", [&](auto word) { return read_time(word, out.quarantine); })
      .value("--rest", [&](auto word) { return read_time(word, out.rest); })
      .flag("--redisson", out.redisson)
      .flag("--updates", out.updates)
      .number("--index", out.index)
      .number("--incarnation", out.incarnation)
      .text("--folder", out.folder)
      .value("--server", [&](auto word) { return !out.servers.emplace_back(word).empty(); })
      .flag("--keep", out.keep)
      .flag("--worker", out.worker);
  auto const code = all.read(count, words, print_help);
  // A lease of those counters, and the time for which a master goes on that was replaced.
  if (out.quarantine.count() == 0)
    out.quarantine = out.lease / 2 + milliseconds(out.topology == "cluster" ? 500 : 2'500);
  if (out.rest.count() == 0) out.rest = out.topology == "cluster" ? out.lease / 2 : out.lease * 2;
  return code;
}

std::string command_for(options const& run) {
  if (!run.topology.empty())
    return "scripts/torture --topology " + run.topology +
           (run.mishaps.empty() ? "" : " --mishap " + joined(run.mishaps)) +
           (run.failovers > 0 ? " --failovers " + std::to_string(run.failovers) : "") + " --minutes " +
           number(run.minutes) + " --sets " + std::to_string(run.sets) + " --synced " + synced_text(run) +
           " --quarantine " + std::to_string(run.quarantine.count()) + " --rest " + std::to_string(run.rest.count()) +
           " --kind " + kind_names(run) + " --processes " + std::to_string(run.processes) + " --lease " +
           std::to_string(run.lease.count()) + " --seed " + std::to_string(run.seed) +
           (run.redisson ? " --redisson" : "") +
           (run.broken != broken::not_at_all ? std::string(" --broken ") + name_of(run.broken) : "");
  std::string made = "scripts/torture --minutes " + number(run.minutes) + " --kind " + kind_names(run) +
                     " --processes " + std::to_string(run.processes) + " --nemesis " +
                     (run.nemeses.size() == nemesis_names().size() ? "all" : joined(run.nemeses)) + " --seed " +
                     std::to_string(run.seed);
  if (run.lease != options{}.lease) made += " --lease " + std::to_string(run.lease.count());
  if (run.broken != broken::not_at_all) made += std::string(" --broken ") + name_of(run.broken);
  return made;
}

std::vector<std::string> words_for_worker(options const& run, std::string const& folder, int index, int incarnation,
                                          std::vector<std::string> const& servers) {
  std::vector<std::string> words{"--worker"};
  auto const add = [&](std::string name, std::string value) {
    words.push_back(std::move(name));
    words.push_back(std::move(value));
  };
  add("--folder", folder);
  add("--index", std::to_string(index));
  add("--incarnation", std::to_string(incarnation));
  add("--seed", std::to_string(run.seed));
  if (run.pauses) add("--experiment", "pauses");
  if (!run.topology.empty()) {
    add("--topology", run.topology);
    add("--synced", synced_text(run));
    add("--quarantine", std::to_string(run.quarantine.count()));
    if (run.updates) words.push_back("--updates");
  }
  add("--lease", std::to_string(run.lease.count()));
  add("--kind", kind_names(run));
  if (run.broken != broken::not_at_all) add("--broken", name_of(run.broken));
  for (auto const& one : servers) add("--server", one);
  return words;
}

config worker_config(options const& run) {
  config settings;
  settings.lock_watchdog_timeout = run.lease;
  settings.timeout = run.lease * 3 / 10;
  settings.connect_timeout = run.lease * 3 / 10;
  settings.retry_delay = run.lease / 20;
  settings.ping_interval = run.lease / 3;
  settings.fair_lock_wait_timeout = run.lease * 2;
  settings.close_timeout = run.lease * 2;
  settings.min_synced_replicas = run.topology.empty() ? 0 : run.synced;
  settings.replicas_sync_timeout = run.lease / 5;
  if (!run.topology.empty()) settings.busy_poll = {};  // there are more processes than cores
  settings.client_name = "torture-" + std::to_string(run.index);
  return settings;
}

milliseconds longest_call(config const& settings) {
  return settings.connect_timeout + settings.timeout * (settings.retry_attempts + 1);
}

}  // namespace latchkey::torture
