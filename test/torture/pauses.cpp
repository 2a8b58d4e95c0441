#include <support/raw_redis.hpp>
#include <torture/history.hpp>
#include <torture/nemesis.hpp>
#include <torture/pauses.hpp>
#include <torture/run.hpp>
#include <torture/worker.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

namespace latchkey::torture {

namespace {

constexpr std::int64_t pause_every = 5 * second;

struct tally {
  std::uint64_t acknowledged = 0, lost = 0;
};

tally count(test::raw_redis& store, guard how) {
  tally made;
  for (int set = 0; set < sets; ++set) {
    std::istringstream words(store.text("GET", set_name(how, set)));
    std::set<std::string> kept;
    for (std::string word; words >> word;) kept.insert(word);
    for (auto const& one : store.ok("LRANGE", set_name(how, set) + ":acknowledged", 0, -1).elements) {
      ++made.acknowledged;
      made.lost += !kept.contains(one.text);
    }
  }
  return made;
}

// One process after the other, at random: stopped for half a lease to two and a half, then one has five seconds' rest.
class pauser {
 public:
  pauser(stage& on, std::uint64_t seed) : on_(on), dice_(simulation::mix(seed, 99)), next_(now() + pause_every) {}

  void step() {
    if (whom_ >= 0 && now() >= end_) {
      on_.resume(whom_);
      whom_ = -1;
    }
    if (whom_ >= 0 || now() < next_) return;
    whom_ = static_cast<int>(dice_.below(static_cast<std::uint64_t>(on_.workers())));
    on_.stop(whom_);
    ++struck_["pause"];
    auto const lease = on_.run().lease.count() * ms;
    end_ = now() + dice_.between(lease / 2, lease * 5 / 2);
    next_ += pause_every;
  }
  void heal() {
    end_ = 0;
    next_ = now() + 1'000 * second;
    step();
  }
  std::map<std::string, int> const& struck() const { return struck_; }

 private:
  stage& on_;
  simulation::dice dice_;
  std::int64_t next_;
  std::int64_t end_ = 0;
  int whom_ = -1;
  std::map<std::string, int> struck_;
};

void tell(char const* what, tally const& found) {
  double const part =
      found.acknowledged == 0 ? 0 : 100.0 * static_cast<double>(found.lost) / static_cast<double>(found.acknowledged);
  std::printf("  %-42s %7llu %6llu  %5.1f %%\n", what, static_cast<unsigned long long>(found.acknowledged),
              static_cast<unsigned long long>(found.lost), part);
}

}  // namespace

int run_pauses(options const& run) {
  auto const folder = new_folder();
  auto& shared = map_board(board_file(folder));
  test::redis_server store;
  auto settings = run;
  settings.more_servers = {store.where().path};
  stage on(settings, folder);
  pauser pauses(on, run.seed);
  progress shown(run.minutes);
  for (int i = 0; i < on.workers(); ++i) on.spawn(i);
  auto const end = now() + static_cast<std::int64_t>(run.minutes * 60e9);
  while (now() < end) {
    pauses.step();
    shown.update(shared, pauses.struck());
    on.running();
    std::this_thread::sleep_for(milliseconds(5));
  }
  pauses.heal();
  shared.now_is = board::quit;
  auto const late = now() + 30 * second;
  while (on.running() > 0 && now() < late) std::this_thread::sleep_for(milliseconds(5));
  shown.end();
  auto admin = store.admin();
  std::printf("Lease %lld ms, %d processes, a pause every 5 s, read - wait 0 to 2 s - write:\n",
              static_cast<long long>(run.lease.count()), on.workers());
  std::printf("  %-42s %7s %6s  %7s\n", "the write is guarded by", "updates", "lost", "lost");
  auto const bare = count(admin, guard::bare);
  auto const lost = count(admin, guard::lost);
  auto const token = count(admin, guard::token);
  tell("the bare lock", bare);
  tell("the lock, and lost() before the write", lost);
  tell("the fencing token, checked by the store", token);
  std::printf("  %-42s %7s %6s  %5.1f %%\n", "etcd 3.4.3's lock, as published by Jepsen", "", "", 18.0);
  for (auto const& line : on.accidents()) std::printf("%s\n", line.c_str());
  bool const whole = on.running() == 0 && on.accidents().empty() && token.acknowledged > 0;
  std::filesystem::remove_all(folder);
  return whole && token.lost == 0 ? 0 : 1;
}

namespace {

// The store that the lock guards is a server of its own, which nobody disturbs. It refuses who comes with an older
// token than one that it has seen, and sees one with every read: if it looked at tokens of writers only, an older
// holder could write between the read and the write of the next one, be thanked for it, and be overwritten.
constexpr char const* fenced_read = R"(
if tonumber(redis.call('get', KEYS[2]) or '0') > tonumber(ARGV[1]) then return false end
redis.call('set', KEYS[2], ARGV[1])
return redis.call('get', KEYS[1]) or '')";
constexpr char const* fenced_write = R"(
if tonumber(redis.call('get', KEYS[2]) or '0') > tonumber(ARGV[2]) then return 0 end
redis.call('set', KEYS[2], ARGV[2])
redis.call('set', KEYS[1], ARGV[1])
return 1)";

class updater {
 public:
  updater(options const& run, board& shared, client& own, guard how, int set)
      : run_(run),
        shared_(shared),
        store_(test::endpoint{run.servers.at(1), 0}),
        how_(how),
        set_(set_name(how, set)),
        lock_(how == guard::token ? own.get_fenced_lock(set_) : own.get_lock(set_)),
        dice_(simulation::mix(run.seed, static_cast<std::uint64_t>(run.index), static_cast<std::uint64_t>(how), set)) {}

  void run() {
    while (shared_.now_is == board::work) {
      try {
        update();
      } catch (lock_error const&) {
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  }

 private:
  void update() {
    acquire_options how;
    how.wait = milliseconds(3'000);
    auto const held = lock_.acquire(how);
    if (!held) return;
    auto const token = held.fencing_token().value_or(0);
    auto const set = read(token);
    if (!set) return;
    std::this_thread::sleep_for(milliseconds(dice_.between(0, 2'000)));
    auto const element = std::to_string(run_.index) + "." + std::to_string(++elements_);
    if (how_ == guard::lost && (held.lost().stop_requested() || !held.held())) return;
    if (write(*set + element + " ", token)) acknowledge(element);
  }

  // Empty: refused.
  std::optional<std::string> read(std::uint64_t token) {
    if (how_ != guard::token) return store_.text("GET", set_);
    auto const answer = store_.ok("EVAL", fenced_read, 2, set_, set_ + ":token", token);
    if (answer.kind == detail::reply::type::nil) return std::nullopt;
    return answer.text;
  }

  bool write(std::string const& set, std::uint64_t token) {
    if (how_ == guard::token) return store_.integer("EVAL", fenced_write, 2, set_, set_ + ":token", set, token) == 1;
    store_.ok("SET", set_, set);
    return true;
  }

  // What this process may believe to be done.
  void acknowledge(std::string const& element) {
    store_.integer("RPUSH", set_ + ":acknowledged", element);
    ++shared_.sections[static_cast<std::size_t>(run_.index)];
  }

  options const& run_;
  board& shared_;
  test::raw_redis store_;
  guard const how_;
  std::string const set_;
  distributed_lock const lock_;
  simulation::dice dice_;
  int elements_ = 0;
};

}  // namespace

int run_pauses_worker(options const& run) {
  auto& shared = map_board(board_file(run.folder));
  config settings;
  settings.lock_watchdog_timeout = run.lease;
  settings.timeout = run.lease / 4;
  client own(run.servers.at(0), settings);
  std::vector<std::jthread> threads;
  for (auto const how : {guard::bare, guard::lost, guard::token})
    for (int set = 0; set < sets; ++set)
      threads.emplace_back([&, how, set] { updater(run, shared, own, how, set).run(); });
  return 0;
}

}  // namespace latchkey::torture
