#include <interop/support/interop_world.hpp>
#include <interop/support/peer.hpp>
#include <support/catch.hpp>
#include <support/redis_server.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>

namespace latchkey::test {

namespace {

// For work on one kind: LATCHKEY_INTEROP_ONLY names the kinds, separated by commas.
std::vector<interop_kind> wanted(std::vector<interop_kind> all) {
  char const* const only = std::getenv("LATCHKEY_INTEROP_ONLY");
  std::erase_if(all, [&](interop_kind const& one) {
    return only != nullptr && ("," + std::string(only) + ",").find("," + one.name + ",") == std::string::npos;
  });
  return all;
}

}  // namespace

bool interop_kind::listens() const {
  return std::none_of(lock_kinds().begin(), lock_kinds().end(),
                      [&](lock_kind const& one) { return one.name == name && !one.listens; });
}

std::vector<interop_kind> const& interop_kinds() {
  static std::vector<interop_kind> const kinds = wanted({
      {.name = "lock", .rivals = {"lock"}},
      {.name = "fair_lock", .rivals = {"fair_lock"}},
      {.name = "non_reentrant_lock", .rivals = {"non_reentrant_lock", "lock"}},
      {.name = "spin_lock", .rivals = {"spin_lock", "lock"}},
      {.name = "fenced_lock", .rivals = {"fenced_lock", "lock"}},
      {.name = "read_lock", .rivals = {"write_lock"}},
      {.name = "write_lock", .rivals = {"write_lock", "read_lock"}, .longest_lease = 60'000},
      {.name = "multi_lock", .rivals = {"multi_lock"}, .names = 3},
      {.name = "red_lock", .rivals = {"red_lock"}, .names = 3},
  });
  return kinds;
}

std::string names_for(interop_kind const& kind, std::string const& base) {
  auto const first = base.empty() ? new_name() : base;
  std::vector<std::string> names;
  for (int i = 0; i < kind.names; ++i) names.push_back(member_name(first, i));
  return joined(names);
}

std::vector<std::string> const& odd_names() {
  static std::vector<std::string> const names{"two words, and a comma",
                                              "замок 鍵 🔑",
                                              "{tag}:rest",
                                              "before{tag}after",
                                              "open{only",
                                              "close}only",
                                              "empty{}tag",
                                              "%41+&=?",
                                              "a\tb\r\nc",
                                              std::string(1024, 'n')};
  return names;
}

namespace {

// One file for each program run; test/interop/table.py puts them together.
void write(std::string const& line) {
  char const* const folder = std::getenv("LATCHKEY_INTEROP_CELLS");
  if (!folder) return;
  static std::mutex mutex;
  std::lock_guard const guard(mutex);
  std::ofstream(std::string(folder) + "/" + std::to_string(::getpid()) + ".cells", std::ios::app) << line << "\n";
}

}  // namespace

std::string demand_prompt(std::vector<std::chrono::microseconds> wake_ups) {
  std::sort(wake_ups.begin(), wake_ups.end());
  auto const usual = wake_ups[wake_ups.size() / 2];
  demand(usual < 500ms, "the usual wake-up took " + std::to_string(usual.count()) + " us");
  demand(wake_ups.back() < 10s, "a wake-up took " + std::to_string(wake_ups.back().count()) + " us");
  return "median " + std::to_string(usual.count()) + " us";
}

void demand(bool fulfilled, std::string const& otherwise) {
  if (!fulfilled) throw check_failed(otherwise);
}

void demand(answer const& got, std::string_view wanted, std::string const& of) {
  demand(got == wanted, of + ": " + to_string(got) + " instead of " + std::string(wanted));
}

namespace {

struct outcome {
  std::string problem;
  std::string remark;
};

outcome outcome_of(std::function<std::string()> const& body) {
  try {
    return {{}, body()};
  } catch (std::exception const& error) {
    return {error.what(), {}};
  }
}

void report(std::string const& check, std::string const& plain_kind, std::string const& direction, outcome const& got) {
  bool const good = got.problem.empty();
  auto const kind = plain_kind + (other_redisson().empty() ? "" : " " + other_redisson());
  write(check + "\t" + kind + "\t" + direction + "\t" + (good ? "yes\t" + got.remark : "NO\t" + got.problem));
  INFO(check << ", " << kind << ", " << direction << ": " << got.problem);
  CHECK(good);
}

}  // namespace

void cell(std::string const& check, std::string const& kind, std::string const& direction,
          std::function<std::string()> const& body) {
  report(check, kind, direction, outcome_of(body));
}

void cells_together(std::string const& check, std::vector<cell_job> const& jobs) {
  std::vector<std::future<outcome>> running;
  for (auto const& job : jobs) {
    running.push_back(std::async(std::launch::async, [&job] { return outcome_of(job.body); }));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) report(check, jobs[i].kind, jobs[i].direction, running[i].get());
}

void no_cell(std::string const& check, std::string const& kind, std::string const& why) {
  write(check + "\t" + kind + "\t\tnone\t" + why);
}

namespace {

std::vector<std::unique_ptr<redis_server>> three_servers() {
  std::vector<std::unique_ptr<redis_server>> servers;
  for (int i = 0; i < 3; ++i) servers.push_back(std::make_unique<redis_server>(redis_options{.tcp = true}));
  return servers;
}

}  // namespace

interop_world::interop_world(std::chrono::milliseconds timeout, std::chrono::milliseconds fair_lock_wait_timeout)
    : watchdog_timeout(timeout),
      servers(three_servers()),
      admin(servers.front()->admin()),
      redisson(redisson_peer(timeout, uris(), fair_lock_wait_timeout)),
      ours(latchkey_peer(timeout, uris(), fair_lock_wait_timeout)) {}

std::vector<std::string> interop_world::uris() const {
  std::vector<std::string> result;
  for (auto const& one : servers) result.push_back(one->uri());
  return result;
}

void interop_world::await_waiter(interop_kind const& kind, std::string const& names) {
  if (!kind.listens()) {
    // It sleeps and looks, and nothing on the server tells of it.
    std::this_thread::sleep_for(200ms);
    return;
  }
  auto const listens = [&] {
    for (auto const& server : servers) {
      for (auto const& channel : server->admin().ok("PUBSUB", "CHANNELS").elements) {
        for (auto const& name : parts_of(names, ',')) {
          if (channel.text.find(percent_decoded(name)) != std::string::npos) return true;
        }
      }
    }
    return false;
  };
  demand(wait_until(listens), "nobody waits");
}

void interop_world::await_waiter(interop_kind const& kind, std::string const& names, peer& waiter,
                                 std::string const& worker) {
  await_waiter(kind, names);
  if (!kind.listens() || waiter.library() != "Redisson") return;
  demand(waiter.call("observer", "await_blocked", kind.name, names, worker, patience), "blocked", "the waiter");
}

interop_world& steady_world() {
  static interop_world world(30s);
  return world;
}

}  // namespace latchkey::test
