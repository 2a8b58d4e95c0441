// How long nobody is granted a lock while its master changes, and what a caller notices otherwise.
#include <common/numbers.hpp>
#include <interop/support/peer.hpp>
#include <suite/stage.hpp>
#include <support/cluster_set.hpp>
#include <support/patience.hpp>
#include <support/sentinel_set.hpp>

#include <latchkey/latchkey.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {

namespace failovers {

using latchkey::test::cluster_set;
using latchkey::test::sentinel_set;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds silence{2'000};  // after which a server counts as dead

// A client that takes a lock and gives it back.
class library {
 public:
  virtual ~library() = default;
  // \throws std::exception: it was not granted.
  virtual void acquire() = 0;
  virtual void release() = 0;
};

class this_library final : public library {
 public:
  this_library(std::string const& uri, std::string const& name)
      : client_(uri, quiet_config()), lock_(client_.get_lock(name)) {}

  void acquire() override {
    held_ = lock_.acquire({.wait = seconds(30)});
    if (!held_) throw latchkey::lock_error(make_error_code(latchkey::errc::timeout), "still busy");
  }
  void release() override { static_cast<void>(held_.release()); }

 private:
  latchkey::client client_;
  latchkey::distributed_lock lock_;
  latchkey::lease held_;
};

// By its driver, which costs some microseconds a call.
class redisson final : public library {
 public:
  redisson(std::string const& uri, std::string name)
      : name_(std::move(name)), driver_(latchkey::test::redisson_peer(seconds(30), {uri})) {}

  void acquire() override {
    auto const said = driver_->call("one", "lock", "lock", name_);
    if (!said.ok) throw std::runtime_error(said.value);
  }
  void release() override { driver_->call("one", "unlock", "lock", name_); }

 private:
  std::string const name_;
  std::unique_ptr<latchkey::test::peer> driver_;
};

using maker = std::function<std::unique_ptr<library>(std::string const& uri, std::string const& name)>;

// A thread that takes turns under a lock as fast as it can.
class caller {
 public:
  explicit caller(std::unique_ptr<library> by) : by_(std::move(by)), thread_([this] { play(); }) {}
  ~caller() { end(); }
  caller(caller const&) = delete;
  caller& operator=(caller const&) = delete;

  // Waits for grants that were asked for from now on. \throws std::runtime_error: they did not come.
  void await_turns(int many) const {
    int const before = turns_;
    if (!latchkey::test::wait_until([&] { return turns_ > before + many; }, milliseconds(60'000)))
      throw std::runtime_error("nobody is granted the lock any more");
  }
  void begin() { counts_ = true; }
  // Afterwards what was found may be read.
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Milliseconds, of the grants from `begin` on; and calls that ended without one.
  std::vector<double> waits;
  double longest_without = 0;
  int failed = 0;

 private:
  void play() {
    std::int64_t granted = now();
    while (!stop_) {
      std::int64_t const asked = now();
      try {
        by_->acquire();
        std::int64_t const then = std::exchange(granted, now());
        if (counts_) {
          waits.push_back(static_cast<double>(granted - asked) * 1e-6);
          longest_without = std::max(longest_without, static_cast<double>(granted - then) * 1e-6);
        }
        ++turns_;
        by_->release();
      } catch (std::exception const&) {
        if (counts_ && granted < asked) ++failed;
      }
    }
  }

  std::atomic<bool> stop_{false}, counts_{false};
  std::atomic<int> turns_{0};
  std::unique_ptr<library> by_;
  std::thread thread_;
};

// What befalls a lock's master; returns when another one is there.
template <class Set>
struct fault {
  std::string what;
  std::function<void(Set&, std::string const& name)> befalls;
};

struct seen {
  std::vector<double> p50, p99, longest;
  int failed = 0;
};

void observe(std::unique_ptr<library> by, std::function<void()> const& befalls, seen& into) {
  caller one(std::move(by));
  one.await_turns(500);
  one.begin();
  std::this_thread::sleep_for(seconds(1));
  befalls();
  one.await_turns(1);
  std::this_thread::sleep_for(seconds(1));
  one.end();
  into.p50.push_back(quantile(one.waits, 0.5));
  into.p99.push_back(quantile(one.waits, 0.99));
  into.longest.push_back(one.longest_without);
  into.failed += one.failed;
}

void add(stage& on, std::string const& what, seen const& found) {
  auto const note = found.failed == 0 ? "no call failed" : std::to_string(found.failed) + " calls failed";
  on.add(
      {.name = what + ": longest time without a grant", .unit = "ms", .figure = median(found.longest), .note = note});
  on.add({.name = what + ": a grant, p50", .unit = "ms", .figure = median(found.p50)});
  on.add({.name = what + ": a grant, p99", .unit = "ms", .figure = median(found.p99)});
}

// A lock that the first node has.
std::string name_on(cluster_set& set) { return set.name_on(0); }
std::string name_on(sentinel_set&) { return new_name("failover"); }

struct candidate {
  std::string name;
  maker make;
};

template <class Set, class Begin>
void measure(stage& on, int rounds, std::vector<fault<Set>> const& faults, std::vector<candidate> const& candidates,
             Begin const& begin) {
  for (auto const& each : faults) {
    std::vector<seen> found(candidates.size());
    for (int i = 0; i < rounds; ++i)
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        on.say(each.what + candidates[c].name + ", round " + std::to_string(i + 1) + " of " + std::to_string(rounds));
        std::unique_ptr<Set> const set = begin();
        auto const name = name_on(*set);
        observe(
            candidates[c].make(set->uri(), name), [&] { each.befalls(*set, name); }, found[c]);
      }
    for (std::size_t c = 0; c < candidates.size(); ++c) add(on, each.what + candidates[c].name, found[c]);
  }
}

std::vector<fault<cluster_set>> const in_clusters{
    {"cluster, master killed",
     [](cluster_set& set, std::string const&) {
       set.node(0).kill();
       set.await_master(3);
     }},
    {"cluster, master stopped",
     [](cluster_set& set, std::string const&) {
       set.node(0).pause();
       set.await_master(3);
     }},
    {"cluster, CLUSTER FAILOVER", [](cluster_set& set, std::string const&) { set.fail_over(3); }},
    {"cluster, its slot moves",
     [](cluster_set& set, std::string const& name) {
       set.begin_move(name, 0, 1);
       set.move_all(name, 0, 1);
       set.end_move(name, 0, 1);
     }},
};

std::vector<fault<sentinel_set>> const behind_sentinels{
    {"sentinels, master killed",
     [](sentinel_set& set, std::string const&) {
       set.node(0).kill();
       set.await_successor(0);
     }},
    {"sentinels, master stopped",
     [](sentinel_set& set, std::string const&) {
       set.node(0).pause();
       set.await_successor(0);
     }},
    {"sentinels, SENTINEL FAILOVER", [](sentinel_set& set, std::string const&) { set.fail_over(); }},
};

}  // namespace failovers

void run_failover(stage& on) {
  using namespace failovers;
  int const rounds = (on.rounds() + 4) / 5;
  std::vector<candidate> candidates{
      {"", [](auto const& uri, auto const& name) { return std::make_unique<this_library>(uri, name); }}};
  if (latchkey::test::redisson_is_built())
    candidates.push_back(
        {", Redisson", [](auto const& uri, auto const& name) { return std::make_unique<redisson>(uri, name); }});
  else
    on.add({.name = "the same of Redisson", .unit = "ms", .missing = "test/interop/build-driver has not been run"});
  measure(on, rounds, behind_sentinels, candidates, [] {
    auto made = std::make_unique<sentinel_set>(sentinel_set::wishes{.down_after = silence});
    made->await_replicas(0, 2);
    return made;
  });
  measure(on, rounds, in_clusters, candidates, [] {
    auto made = std::make_unique<cluster_set>(silence);
    made->follower(0, 3);
    return made;
  });
}

}  // namespace bench
