// What a lock of each kind costs its server, also by TLS and where two replicas confirm each grant: docs/sizing.md has
// the figures. Bytes and calls are exact; times are those that the server counts itself, and worth something only on a
// quiet machine.
#include <common/machine_state.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/stage.hpp>
#include <support/kinds.hpp>
#include <support/patience.hpp>
#include <support/sentinel_set.hpp>
#include <support/tls_server.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

namespace bench {
namespace {

using latchkey::test::raw_redis;

constexpr std::size_t name_length = 24;
constexpr int pairs_of_a_round = 10'000;  // CPU time is counted in hundredths of a second
constexpr int asked_about_each = 1'000;

struct sized_kind {
  std::string name;
  std::function<void()> take, give;
  std::function<bool()> try_take;
  std::function<void()> prepare = [] {};  // once, where nothing is
};

std::vector<sized_kind> sized_kinds(latchkey::client const& client, std::string const& name) {
  std::vector<sized_kind> all;
  for (auto const& kind : latchkey::test::lock_kinds()) {
    if (kind.joint() || kind.servers > 1) continue;
    auto const lock = kind.of(client, name);
    all.push_back({kind.name, [lock] { lock.lock(); }, [lock] { lock.unlock(); }, [lock] { return lock.try_lock(); }});
  }
  auto const number = client.get_semaphore(name);
  all.push_back({"semaphore", [number] { number.acquire(); }, [number] { number.release(); },
                 [number] { return number.try_acquire(); }, [number] { number.add_permits(1); }});
  auto const permits = client.get_permit_semaphore(name);
  auto const one = std::make_shared<std::string>();
  all.push_back({"permit_semaphore", [permits, one] { *one = permits.acquire(); },
                 [permits, one] { permits.release(*one); }, [permits] { return permits.try_acquire().has_value(); },
                 [permits] { permits.add_permits(1); }});
  auto const latch = client.get_count_down_latch(name);
  all.push_back({"count_down_latch", [latch] { static_cast<void>(latch.try_set_count(1)); },
                 [latch] { latch.count_down(); }, [latch] { return latch.try_set_count(1); }});
  return all;
}

// Of all keys that are there, with what the server's allocator adds.
double bytes_of_keys(raw_redis& admin) {
  double sum = 0;
  for (auto const& key : admin.ok("KEYS", "*").elements)
    sum += static_cast<double>(admin.integer("MEMORY", "USAGE", key.text, "SAMPLES", 0));
  return sum;
}

struct server_work {
  double calls = 0, inner = 0, microseconds = 0;  // inner: what scripts call
};

// From INFO commandstats: `cmdstat_evalsha:calls=1,usec=2,...`. The time of a script contains that of what it calls.
server_work work_of(raw_redis& admin) {
  server_work made;
  std::istringstream lines(admin.text("INFO", "commandstats"));
  for (std::string line; std::getline(lines, line);) {
    auto const value = [&](std::string const& of) { return std::stod(line.substr(line.find(of) + of.size())); };
    if (!line.starts_with("cmdstat_")) continue;
    constexpr std::string_view not_of_a_pair[] = {"info",     "config", "keys", "memory",
                                                  "flushall", "client", "ping", "role"};
    auto const is_here = [&](std::string_view one) { return line.compare(8, one.size(), one) == 0; };
    if (std::any_of(std::begin(not_of_a_pair), std::end(not_of_a_pair), is_here)) continue;
    bool const script = line.starts_with("cmdstat_eval");
    (script ? made.calls : made.inner) += value("calls=");
    if (script) made.microseconds += value("usec=");
  }
  return made;
}

// A server, and a client of it.
struct place {
  std::string meaning;
  latchkey::test::redis_server const& server;
  latchkey::client client;
  std::vector<double> cpu{};  // of the server for a pair, each round, microseconds
};

double median(std::vector<double>& of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

void size_bytes(stage& on, sized_kind const& kind, raw_redis& admin) {
  kind.take();
  on.add({.name = kind.name + ", held", .unit = "bytes", .figure = bytes_of_keys(admin)});
  kind.give();
  on.add({.name = kind.name + ", released", .unit = "bytes", .figure = bytes_of_keys(admin)});
}

// `kinds`: the same one at each place, the first of which is without anything. Rounds go by turns.
void size(stage& on, std::vector<sized_kind> const& kinds, std::vector<place>& all, raw_redis& admin) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].server.admin().ok("FLUSHALL");
    all[i].cpu.clear();
    kinds[i].prepare();
    kinds[i].take();  // what the server and the client have to learn first
    kinds[i].give();
  }
  auto const& kind = kinds.front();
  size_bytes(on, kind, admin);
  std::vector<double> times;
  server_work counted;
  for (int round = 0; round < std::max(on.rounds() / 5, 1); ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0) admin.ok("CONFIG", "RESETSTAT");
      double const cpu = cpu_seconds_of(all[i].server.pid());
      for (int pair = 0; pair < pairs_of_a_round; ++pair) {
        kinds[i].take();
        kinds[i].give();
      }
      all[i].cpu.push_back((cpu_seconds_of(all[i].server.pid()) - cpu) * 1e6 / pairs_of_a_round);
      if (i > 0) continue;
      counted = work_of(admin);
      times.push_back(counted.microseconds / pairs_of_a_round);
    }
  on.add({.name = kind.name + ", scripts of a pair", .unit = "calls", .figure = counted.calls / pairs_of_a_round});
  on.add({.name = kind.name + ", what they call", .unit = "calls", .figure = counted.inner / pairs_of_a_round});
  on.add({.name = kind.name + ", time in scripts of a pair", .unit = "us", .figure = median(times)});
  for (auto& one : all)
    on.add(
        {.name = kind.name + ", CPU of the server for a pair" + one.meaning, .unit = "us", .figure = median(one.cpu)});
}

// Each operation by itself. The server is asked about each, so that its caches are colder than in a row of pairs. The
// other client tries in vain, where the kind lets nobody else in.
void size_operations(stage& on, sized_kind const& kind, sized_kind const& other, raw_redis& admin) {
  auto const spent = [&](auto const& operation) {
    double const before = work_of(admin).microseconds;
    operation();
    return work_of(admin).microseconds - before;
  };
  double taking = 0, trying = 0, giving = 0;
  bool refused = true;
  for (int i = 0; i < asked_about_each; ++i) {
    taking += spent(kind.take);
    if (refused) trying += spent([&] { refused = !other.try_take(); });
    if (i == 0 && !refused) other.give();
    giving += spent(kind.give);
  }
  auto const add = [&](std::string const& what, double sum) {
    on.add({.name = kind.name + ", time in the script that " + what, .unit = "us", .figure = sum / asked_about_each});
  };
  add("takes it", taking);
  if (refused) add("finds it taken", trying);
  add("gives it back", giving);
}

double used_memory(raw_redis& admin) {
  auto const text = admin.text("INFO", "memory");
  return std::stod(text.substr(text.find("used_memory:") + 12));
}

// Its connections are there once it has been used by a thread and has waited.
void size_client(stage& on, raw_redis& admin) {
  double const before = used_memory(admin);
  int const connected = admin.clients();
  constexpr int many = 100;
  std::vector<latchkey::client> all;
  for (int i = 0; i < many; ++i) {
    all.emplace_back(on.uri(), quiet_config());
    auto const lock = all.back().get_lock(new_name("sizing"));
    lock.lock();
    lock.unlock();
  }
  double const used = (used_memory(admin) - before) / many;
  on.add({.name = "connections of a client that a thread has used",
          .unit = "",
          .figure = static_cast<double>(admin.clients() - connected) / many});
  on.add({.name = "memory of the server for such a client", .unit = "bytes", .figure = used});
  // Buffers of connections that say nothing shrink.
  std::this_thread::sleep_for(std::chrono::seconds(10));
  double const idle = (used_memory(admin) - before) / many;
  on.add({.name = "memory of the server for it 10 s later", .unit = "bytes", .figure = idle});
}

}  // namespace

void run_sizing(stage& on) {
  using namespace latchkey::test;
  tls_server const secured;
  sentinel_set replicated;  // a server that nobody succeeds is asked for no WAIT
  auto const& master = replicated.node(replicated.master());
  auto all_confirm = quiet_config();
  all_confirm.min_synced_replicas = -1;
  std::vector<place> all;
  all.push_back({"", on.server(), latchkey::client(on.uri(), quiet_config())});
  all.push_back({", TLS", secured.server, latchkey::client(secured.uri(), with_tls(quiet_config()))});
  all.push_back({", WAIT for two replicas", master, latchkey::client(replicated.uri(), all_confirm)});

  std::vector<std::vector<sized_kind>> kinds;
  for (auto const& one : all) kinds.push_back(sized_kinds(one.client, "sizing:" + std::string(name_length - 7, 'n')));
  latchkey::client const rival(on.uri(), quiet_config());
  auto const others = sized_kinds(rival, "sizing:" + std::string(name_length - 7, 'n'));
  auto admin = on.server().admin();
  for (std::size_t i = 0; i < kinds.front().size(); ++i) {
    on.say(kinds.front()[i].name);
    std::vector<sized_kind> same;
    for (auto const& there : kinds) same.push_back(there[i]);
    size(on, same, all, admin);
    size_operations(on, kinds.front()[i], others[i], admin);
  }
  must_happen(all.back().client.snapshot().waits_met > 0, "replicas confirmed");
  size_client(on, admin);
}

}  // namespace bench
