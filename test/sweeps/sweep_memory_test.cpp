// Case 86: memory that is short once, at every place where it is asked for, on whatever thread of the program.
#include <support/catch.hpp>
#include <sweeps/failing_memory.hpp>
#include <sweeps/lock_kinds.hpp>
#include <sweeps/memory_sweep.hpp>

#include <filesystem>
#include <future>
#include <iostream>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>

using namespace latchkey;
using namespace latchkey::test;

namespace {

std::ptrdiff_t count_in(char const* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// Runs it with the n-th allocation failing, for every n until none does. Answers how often it threw.
template <class Use, class After>
int fail_everywhere(Use use, After after) {
  constexpr long most = 2'000;
  int threw = 0;
  for (long n = 0;; ++n) {
    INFO("allocation " << n);
    REQUIRE(n < most);
    bool thrown = false;
    failing_memory::fail_after(n);
    try {
      use();
    } catch (std::bad_alloc const&) {
      thrown = true;
    } catch (...) {
      failing_memory::stop();
      throw;
    }
    bool const failed = failing_memory::stop();
    CHECK(thrown == failed);
    threw += thrown;
    after();
    if (!failed) return threw;
  }
}

}  // namespace

TEST_CASE("case 86: a client for which there is no memory is not made, and leaves nothing", "[server][case-86]") {
  auto const uri = common_server().uri();
  auto const settings = sweep_config();
  { client const first(uri, settings); }  // what the process makes once
  auto const threads = count_in("/proc/self/task"), files = count_in("/proc/self/fd");
  int const threw = fail_everywhere(
      [&] {
        client const one(uri, settings);
        failing_memory::stop();
      },
      [&] {
        CHECK(wait_until([&] { return count_in("/proc/self/task") == threads; }));
        CHECK(count_in("/proc/self/fd") == files);
      });
  CHECK(threw > 5);
}

TEST_CASE("case 86: a lock for which there is no memory is not made, and the next one is", "[server][case-86]") {
  auto const own = one_client();
  std::string const name = new_name() + std::string(100, 'x');
  for (auto const& kind : lock_kinds()) {
    INFO(kind.name);
    int const threw = fail_everywhere(
        [&] {
          auto const made = kind.make(own, name);
          failing_memory::stop();
        },
        [] {});
    CHECK(threw > 0);
    CHECK(kind.make(own, name).try_lock());
    kind.make(own, name).unlock();
  }
}

namespace {

void sweep_uses(std::vector<use> const& uses, bool cold) {
  auto const before = common_server().admin().clients();
  memory_sweep sweep;
  for (auto const& one : uses) sweep.over(one, cold);
  CHECK(sweep.thrown > 0);
  CHECK(sweep.errors > 0);
  std::cout << uses.size() << " uses: " << sweep.thrown << " threw bad_alloc, " << sweep.errors
            << " ended with an error, " << sweep.passed << " passed; " << sweep.ended << " clients ended\n";
  // Nothing of the clients that ended is left.
  auto admin = common_server().admin();
  CHECK(wait_until([&] { return admin.clients() <= before; }));
  CHECK(admin.clients() <= before);
}

bool is_counted(std::string const& kind) { return kind.find("semaphore") != kind.npos || kind == "count_down_latch"; }

// Somebody else has it; the call waits, is let go on, and ends. All of it in one client, which may end with all of it.
void wait_and_end(waiting_call const& call, clients const& all, std::string const& name) {
  auto const let_go = call.occupy(all, name);
  auto const said = std::make_shared<std::promise<error_code>>();
  auto ended = said->get_future();
  call.begin(all, name, {}, [said](error_code error) { said->set_value(error); });
  // Not by REQUIRE, which allocates, too.
  auto const await_end = [&] {
    if (ended.wait_for(patience) != std::future_status::ready) throw std::logic_error("the waiting call does not end");
  };
  try {
    let_go();
  } catch (std::bad_alloc const&) {
    let_go();  // nothing has begun
    await_end();
    throw;
  }
  await_end();
  if (auto const error = ended.get()) throw boost::system::system_error(error);
}

// A multi lock is released while somebody waits for one of its members.
waiting_call contended_member() {
  return {
      "multi_lock, one member waited for",
      [](clients const& theirs, std::string const& name) -> std::function<void()> {
        auto const& own = theirs[0];
        auto const all = own.get_multi_lock({own.get_lock(name), own.get_lock(name + " too")});
        auto const held = std::make_shared<lease>(all.acquire());
        return [held] { static_cast<void>(held->release()); };
      },
      [](clients const& all, std::string const& name, asio::cancellation_slot, std::function<void(error_code)> done) {
        all[0].get_lock(name).async_acquire([done = std::move(done)](error_code error, lease const&) { done(error); });
      },
      [](clients const& all, std::string const& name) {
        return !all[0].get_lock(name).is_locked() && !all[0].get_lock(name + " too").is_locked();
      }};
}

std::vector<use> every_wait() {
  static auto const all = [] {
    auto made = every_waiting_call();
    made.push_back(contended_member());
    return made;
  }();
  std::vector<use> made;
  for (auto const& one : all) {
    bool const may_stay = is_counted(one.kind);  // what these take here has no lease
    made.push_back({one.kind, "wait",
                    [&one](clients const& all, std::string const& name) { wait_and_end(one, all, name); },
                    may_stay ? nullptr : one.is_free});
  }
  return made;
}

// These kinds; the sum of all is the table of kinds.
void sweep_kinds(std::function<bool(std::string const&)> const& chosen) {
  std::vector<use> uses;
  for (auto const& one : every_use())
    if (chosen(one.kind)) uses.push_back(one);
  CHECK(!uses.empty());
  sweep_uses(uses, false);
}

bool is_joint(std::string const& kind) { return kind == "multi_lock" || kind == "red_lock"; }

}  // namespace

// The connection is made meanwhile that blocked callers borrow.
TEST_CASE("case 86: a client that is still connecting, and whose n-th allocation fails", "[server][case-86]") {
  auto const pairs = [](clients const& all, std::string const& name) {
    auto const lock = all[0].get_lock(name);
    for (int i = 0; i < 20; ++i)
      if (lock.try_lock()) lock.unlock();
  };
  sweep_uses({{"lock", "twenty pairs", pairs, {}}}, true);
}

TEST_CASE("case 86: a lock whose n-th allocation fails", "[server][case-86]") {
  sweep_kinds([](std::string const& kind) { return !is_joint(kind) && !is_counted(kind); });
}

TEST_CASE("case 86: a lock of several members whose n-th allocation fails", "[server][case-86]") {
  sweep_kinds(is_joint);
}

TEST_CASE("case 86: a semaphore or latch whose n-th allocation fails", "[server][case-86]") { sweep_kinds(is_counted); }

TEST_CASE("case 86: a caller who waits while the n-th allocation fails", "[server][case-86]") {
  sweep_uses(every_wait(), false);
}
