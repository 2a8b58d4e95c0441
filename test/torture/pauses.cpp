#include <torture/nemesis.hpp>
#include <torture/pauses.hpp>
#include <torture/pauses_guards.hpp>
#include <torture/progress.hpp>
#include <torture/run.hpp>

#include <cstdio>
#include <filesystem>
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

}  // namespace latchkey::torture
