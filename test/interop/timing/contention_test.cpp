// Two processes of each library, four threads in each, take turns under one lock.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <thread>

using namespace latchkey::test;

namespace {

constexpr int threads = 4;
long long const target = in_long_form() ? 20'000 : 6'000;
long long const most_each = target / 2 / (2 * threads);  // turns of one of latchkey's threads
// Several times what two idle cores take.
constexpr auto time_limit = 240s;
// While connections are killed.
auto const killing_time = in_long_form() ? 6s : 3s;
// A call of Redisson that failed leaves its entry in the queue of a fair lock, and a waiter of Redisson that missed its
// message sleeps for the sum of the waiting times before it: with 5 minutes each, long after everybody else is done.
constexpr auto short_wait = 300ms;

struct turns {
  long long taken = 0;
  long long failed_locks = 0;
  long long failed_turns = 0;
  long long failed_unlocks = 0;

  void add(answer const& told) {
    auto const words = parts_of(told.value, ' ');
    demand(told.ok && words.size() == 4, "turns: " + to_string(told));
    taken += std::stoll(words[0]);
    failed_locks += std::stoll(words[1]);
    failed_turns += std::stoll(words[2]);
    failed_unlocks += std::stoll(words[3]);
  }

  std::string words() const {
    return std::to_string(taken) + " turns, failed: " + std::to_string(failed_locks) + " locks, " +
           std::to_string(failed_turns) + " turns, " + std::to_string(failed_unlocks) + " unlocks";
  }
};

// A second process of each library, and what both processes of each did.
struct crowd {
  explicit crowd(std::chrono::milliseconds watchdog_timeout, std::chrono::milliseconds fair_lock_wait_timeout = 0ms)
      : world(watchdog_timeout, fair_lock_wait_timeout),
        redisson(redisson_peer(watchdog_timeout, world.uris(), fair_lock_wait_timeout)),
        ours(latchkey_peer(watchdog_timeout, world.uris(), fair_lock_wait_timeout)) {}

  long long number(std::string const& key) { return std::stoll("0" + world.admin.command("GET", key).text); }

  // `during` is called every 50 ms until the time is over.
  void run(std::string const& kind, std::string const& name, long long until, std::chrono::milliseconds limit,
           std::function<void()> const& during = {}) {
    auto const begin = [&](peer& who, std::vector<std::future<answer>>& started) {
      for (int i = 0; i < threads; ++i) {
        auto const number = "number-" + name;
        // While connections are killed the library has a number of its own beside the common one.
        auto const keys = during ? number + "," + number + "-" + who.library() : number;
        // A lock that is not fair goes to whoever is quicker: latchkey's threads leave when they have had their half.
        started.push_back(who.start("t" + std::to_string(i), "turns", kind, name, keys, until, limit,
                                    kind == "fair_lock" ? until : most_each));
      }
    };
    stopwatch const since;
    std::vector<std::future<answer>> by_redisson;
    std::vector<std::future<answer>> by_ours;
    begin(*world.redisson, by_redisson);
    begin(*world.ours, by_ours);
    begin(*redisson, by_redisson);
    begin(*ours, by_ours);
    std::jthread const beside([&](std::stop_token const& stop) {
      while (during && !stop.stop_requested() && since.passed() < limit) {
        during();
        std::this_thread::sleep_for(50ms);
      }
    });
    auto const deadline = limit + 4 * patience;
    for (auto& one : by_ours) latchkey_part.add(peer::value_in(std::move(one), "latchkey's turns", deadline));
    latchkey_took = since.passed();
    for (auto& one : by_redisson) redisson_part.add(peer::value_in(std::move(one), "Redisson's turns", deadline));
    took = since.passed();
  }

  interop_world world;
  std::unique_ptr<peer> redisson;
  std::unique_ptr<peer> ours;
  turns redisson_part;
  turns latchkey_part;
  std::chrono::milliseconds took{0};
  std::chrono::milliseconds latchkey_took{0};
};

void contend(std::string const& kind, bool shared_fairly) {
  cell("7 contention", kind, "nobody's", [&] {
    crowd all(30s);
    all.run(kind, "hot", target, time_limit);
    auto const remark = "latchkey " + all.latchkey_part.words() + "; Redisson " + all.redisson_part.words() + "; " +
                        std::to_string(all.took.count()) + " ms";
    std::cout << kind << ": " << remark << std::endl;
    auto const taken = all.latchkey_part.taken + all.redisson_part.taken;
    demand(all.number("number-hot") == taken,
           "the number is " + std::to_string(all.number("number-hot")) + " after " + remark);
    demand(taken >= target, "not enough: " + remark);
    auto const least = shared_fairly ? taken / 5 : taken / 100;
    demand(all.latchkey_part.taken >= least && all.redisson_part.taken >= least, "not fair: " + remark);
    return std::to_string(all.latchkey_part.taken) + " by latchkey, " + std::to_string(all.redisson_part.taken) +
           " by Redisson";
  });
}

void kill_latchkeys(std::string const& kind) {
  cell("7 contention", kind, "latchkey's", [&] {
    crowd all(quick_timeout, short_wait);
    auto admin = all.world.servers.front()->admin();
    int kills = 0;
    all.run(kind, "hot", target, killing_time, [&] { kills += admin.kill_clients("name=latchkey"); });
    auto const remark = kind + ": latchkey " + all.latchkey_part.words() + "; Redisson " + all.redisson_part.words() +
                        "; " + std::to_string(kills) + " connections killed";
    std::cout << remark << "; " << all.latchkey_took.count() << " and " << all.took.count() << " ms" << std::endl;
    demand(all.number("number-hot-latchkey") == all.latchkey_part.taken, "latchkey's number is wrong after " + remark);
    demand(all.number("number-hot") == all.latchkey_part.taken + all.redisson_part.taken,
           "the number is " + std::to_string(all.number("number-hot")) + " after " + remark);
    demand(all.latchkey_part.taken >= 100 && all.redisson_part.taken >= 1, "not enough: " + remark);
    return std::to_string(all.latchkey_part.taken) + " by latchkey, " + std::to_string(all.redisson_part.taken) +
           " by Redisson; " + std::to_string(kills) + " connections killed";
  });
}

void kill_redissons(std::string const& kind) {
  cell("7 contention", kind, "Redisson's", [&] {
    crowd all(quick_timeout, short_wait);
    auto admin = all.world.servers.front()->admin();
    int kills = 0;
    all.run(kind, "hot", target, killing_time, [&] { kills += admin.kill_clients("name=redisson"); });
    auto const remark = kind + ": latchkey " + all.latchkey_part.words() + "; Redisson " + all.redisson_part.words() +
                        "; " + std::to_string(kills) + " connections killed; number " +
                        std::to_string(all.number("number-hot"));
    std::cout << remark << "; " << all.latchkey_took.count() << " and " << all.took.count() << " ms" << std::endl;
    demand(all.number("number-hot-latchkey") == all.latchkey_part.taken, "latchkey's number is wrong after " + remark);
    demand(all.latchkey_part.taken >= 1 && all.latchkey_part.failed_locks == 0, "latchkey suffered: " + remark);
    // A turn of Redisson whose reading or writing failed may have been written; one whose hold was lost meanwhile,
    // which its unlock says, may have written over those of others.
    auto const sum = all.latchkey_part.taken + all.redisson_part.taken;
    auto const number = all.number("number-hot");
    demand(number <= sum + all.redisson_part.failed_turns, "the number is too high after " + remark);
    demand(number == sum || all.redisson_part.failed_turns + all.redisson_part.failed_unlocks > 0,
           "the number is wrong, and nothing explains it, after " + remark);
    return std::to_string(all.latchkey_part.taken) + " by latchkey, " + std::to_string(all.redisson_part.taken) +
           " by Redisson; " + std::to_string(kills) + " connections killed";
  });
}

// Drivers that are started while it lives have config::local_turns.
struct with_turns {
  with_turns() { ::setenv("LATCHKEY_INTEROP_TURNS", "1", 1); }
  ~with_turns() { ::unsetenv("LATCHKEY_INTEROP_TURNS"); }
};

// Who holds it when it is forced open goes on beside the next: the number says nothing, but all have their turns.
void force_open() {
  with_turns const set;
  crowd all(quick_timeout, short_wait);
  int forced = 0;
  all.run("lock", "hot", target, killing_time, [&] {
    auto const told = all.world.redisson->call("f", "force_unlock", "lock", "hot");
    forced += told.ok && told.value == "true";
  });
  auto const remark = "latchkey " + all.latchkey_part.words() + "; Redisson " + all.redisson_part.words() + "; " +
                      std::to_string(forced) + " forced";
  std::cout << remark << std::endl;
  INFO(remark);
  CHECK(forced > 0);
  CHECK(all.latchkey_part.taken >= 100);
  CHECK(all.redisson_part.taken >= 1);
  CHECK(all.latchkey_part.failed_locks == 0);
  // Each ends the hold of one, and with it what began behind that before it was heard.
  CHECK(all.latchkey_part.failed_unlocks <= 2 * forced);
  CHECK(all.world.ours->call("e", "try_lock", "lock", "hot").value == "true");
}

void compete() {
  with_turns const set;
  crowd all(30s);
  all.run("lock", "hot", target, time_limit);
  auto const taken = all.latchkey_part.taken + all.redisson_part.taken;
  INFO("latchkey " + all.latchkey_part.words() + "; Redisson " + all.redisson_part.words());
  CHECK(all.number("number-hot") == taken);
  CHECK(taken >= target);
  CHECK(all.redisson_part.taken >= taken / 100);
}

}  // namespace

TEST_CASE("latchkey's streaks and Redisson's turns under one lock are exact", "[interop]") { compete(); }

TEST_CASE("latchkey's streaks go on while Redisson forces the lock open", "[interop]") { force_open(); }

TEST_CASE("both libraries in four processes take exact turns under a lock", "[interop]") { contend("lock", false); }

TEST_CASE("both libraries in four processes take exact turns under a fair lock, each its share", "[interop]") {
  contend("fair_lock", true);
}

TEST_CASE("both libraries in four processes take exact turns under a write lock", "[interop]") {
  contend("write_lock", false);
}

TEST_CASE("turns stay exact while latchkey's connections are killed: a lock", "[interop]") { kill_latchkeys("lock"); }

TEST_CASE("turns stay exact while latchkey's connections are killed: a fair lock", "[interop]") {
  kill_latchkeys("fair_lock");
}

TEST_CASE("turns stay exact while latchkey's connections are killed: a write lock", "[interop]") {
  kill_latchkeys("write_lock");
}

TEST_CASE("latchkey's turns stay exact while Redisson's connections are killed: a lock", "[interop]") {
  kill_redissons("lock");
}

TEST_CASE("latchkey's turns stay exact while Redisson's connections are killed: a fair lock", "[interop]") {
  kill_redissons("fair_lock");
}

TEST_CASE("latchkey's turns stay exact while Redisson's connections are killed: a write lock", "[interop]") {
  kill_redissons("write_lock");
}
