// Walks at random through failovers: calls, lost connections, replicas that lag and masters that are replaced, in any
// order, by clients who hear of it at different times. What the new master has is a beginning of what the old one did.
// With min_synced_replicas of all, and one failover at a time, nobody ever believes to hold what somebody else does
// (docs/safety.md, F1 to F4, F7, F8). A seed that fails is printed: LATCHKEY_SEED=n runs it alone, LATCHKEY_WALKS=n so
// many.
#include <support/catch.hpp>
#include <support/unit/world.hpp>
#include <wire/kinds.hpp>

#include <cstdlib>

namespace machine_failover_walk {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr int moves = 160;
constexpr std::size_t clients = 3;
constexpr std::size_t replicas = 2;
constexpr milliseconds most_skew{200};

config settings_of(int needed) {
  config made;
  made.lock_watchdog_timeout = 3s;
  made.timeout = 1s;
  made.connect_timeout = 1s;
  made.retry_delay = 100ms;
  made.replicas_sync_timeout = 500ms;
  made.min_synced_replicas = needed;
  made.clock_margin = most_skew;
  made.local_handoff = {.max_streak = 3, .max_time = 50ms};
  return made;
}

task* any(world& w, bool (*fits)(task&)) {
  std::vector<task*> all;
  for (auto const& one : w.tasks())
    if (fits(*one)) all.push_back(one.get());
  return all.empty() ? nullptr : all[w.random(all.size())];
}

bool waits(task& one) { return one.what == task::type::acquire && !one.done(); }
bool held(task& one) { return one.granted() && !one.ended; }
bool kept(task& one) { return held(one) && !one.shown.lost; }

class walk {
 public:
  walk(std::uint64_t seed, int needed) : w_(settings_of(needed), clients, world::known::by_sentinel) {
    w_.any_order = seed * 2 + 1;
    w_.faulty = true;
    w_.late_bytes = false;
    w_.exclusive = needed < 0;
    become_master(w_.server);
  }

  void play() {
    for (int i = 0; i < moves; ++i) {
      switch (w_.random(12)) {
        case 0:
        case 1: call(); break;
        case 2: fault(); break;
        case 3:
          if (w_.random(3) == 0) replicate();
          break;
        case 4:
          if (w_.random(8) == 0) fail_over();
          break;
        case 5:
          if (w_.random(2) == 0) w_.wait_for_next();
          break;
        default: w_.step();
      }
    }
    end();
  }

  int failovers() const { return failovers_; }
  std::size_t granted() const {
    return static_cast<std::size_t>(
        std::count_if(w_.tasks().begin(), w_.tasks().end(), [](auto const& one) { return one->granted(); }));
  }

 private:
  void become_master(stepped_server& one) {
    master_ = &one;
    copy_ = one.redis.data;
    linked_ = true;
    one.redis.replicas = replicas;
    // Called before whatever the server runs.
    one.elsewhere = [this, &one](stepped_server::words const& command, bool) -> std::string {
      if (&one != master_ && &one != deposed_ && command[0].starts_with("EVAL"))
        return "READONLY You can't write against a read only replica.";
      if (command[0] == "WAIT") {
        bool const all = &one == master_ && linked_;
        if (all) replicate();
        one.redis.synced_replicas = all ? replicas : w_.random(replicas);
      }
      return {};
    };
  }

  void replicate() { copy_ = master_->redis.data; }

  // The clock of the next master may be ahead: what is copied is a time of day.
  void fail_over() {
    if (deposed_ || failovers_ == 3) return end_of_deposed();
    ++failovers_;
    w_.remember("a failover");
    stepped_server& old = *master_;
    stepped_server& next = w_.add_server();
    next.redis.data = copy_;
    auto const skew = static_cast<std::int64_t>(w_.random(static_cast<std::uint64_t>(most_skew.count()) + 1));
    for (auto const& key : next.redis.data.keys())
      if (auto* const found = next.redis.data.find(key); found && found->ends != model::keyspace::forever)
        found->ends -= skew;
    sentinels::promote(w_, next, w_.random(2) == 0);
    deposed_ = &old;
    become_master(next);
    if (w_.random(2) == 0) end_of_deposed();
  }

  // It is dead, or has become a copy: everybody who was connected hears of it.
  void end_of_deposed() {
    if (auto* const old = std::exchange(deposed_, nullptr)) old->restart(false);
  }

  void call() {
    std::uint64_t const owner = 1 + w_.random(3);
    how options;
    if (w_.random(4) == 0) options.name = "other";
    options.client = w_.random(clients);
    options.direct = w_.random(3) == 0;
    if (w_.random(3) == 0) options.wait = milliseconds(w_.random(6'000));
    if (w_.random(3) == 0) options.lease = milliseconds(400 + w_.random(8'000));
    switch (w_.random(8)) {
      case 0:
      case 1:
      case 2: w_.acquire(owner, options); return;
      case 3: w_.once(owner, options); return;
      case 4:
        if (task* one = any(w_, held)) w_.release(*one, w_.random(2) == 0);
        return;
      case 5:
        if (task* one = any(w_, held)) w_.drop(*one);
        return;
      case 6:
        if (task* one = any(w_, kept)) w_.extend(*one, milliseconds(500 + w_.random(20'000)), w_.random(2) == 0);
        return;
      default:
        if (task* one = any(w_, waits)) w_.cancel(*one);
    }
  }

  void fault() {
    std::size_t const client = w_.random(clients);
    role const as = static_cast<role>(w_.random(3));
    switch (w_.random(12)) {
      case 0: w_.lose(as, fate::gone, client); return;
      case 1: w_.lose(as, fate::ran, client); return;
      case 2: w_.lose(as, fate::late, client); return;
      case 3: w_.lose(as, fate::silent, client); return;
      case 4: linked_ = !linked_; return;
      case 5: master_->flush_scripts(); return;
      default: return;
    }
  }

  void end() {
    end_of_deposed();
    linked_ = true;
    w_.late_bytes = true;
    // Whoever has nothing to do with a server does not ask who it is; then each has heard of the last failover.
    for (std::size_t i = 0; i < clients; ++i) w_.release(finished(w_.acquire(9, {.name = "last", .client = i})));
    w_.resolve();
    for (auto const& left : master_->all())
      if (left.find("/client") != std::string::npos) w_.fail("a ghost is left: " + left);
  }

  task& finished(task& one) {
    w_.await(one);
    return one;
  }

  world w_;
  stepped_server* master_ = nullptr;
  stepped_server* deposed_ = nullptr;  // goes on, and does not know it
  model::keyspace copy_;               // what the next master would have
  bool linked_ = true;                 // replicas follow
  int failovers_ = 0;
};

void walk_all(int needed) {
  char const* const chosen = std::getenv("LATCHKEY_SEED");
  char const* const many = std::getenv("LATCHKEY_WALKS");
  std::uint64_t const first = chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  std::uint64_t const last = chosen ? first : many ? std::strtoull(many, nullptr, 10) : 400;
  std::uint64_t failovers = 0, granted = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    try {
      walk one(seed, needed);
      one.play();
      failovers += static_cast<std::uint64_t>(one.failovers());
      granted += one.granted();
    } catch (violation const& broken) {
      FAIL("seed " << seed << ": " << broken.what());
    }
  }
  CHECK((chosen || failovers > last / 2));
  CHECK((chosen || granted > 3 * last));
  if (many) WARN(last << " walks, " << failovers << " failovers, " << granted << " grants");
}

}  // namespace

TEST_CASE("walk: failovers, every replica having confirmed each grant", "[unit][machine]") { walk_all(-1); }

TEST_CASE("walk: failovers, one replica having confirmed each grant: all comes to rest", "[unit][machine]") {
  walk_all(0);
}

}  // namespace machine_failover_walk
