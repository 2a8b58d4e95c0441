// Case 86: memory that is short once, at every place where it is asked for. A call throws before it has begun, or the
// process ends; nothing hangs, and nothing goes on with half a step.
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <sweeps/failing_memory.hpp>
#include <sweeps/uses.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <boost/asio/use_future.hpp>

#include <exception>
#include <filesystem>
#include <iterator>
#include <new>

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

// What the children and whoever makes them see.
struct progress {
  long n = 0;
  int threw = 0;
  bool over = false;
};

using body = void (*)(client const&, std::string const& name);

// How a process ends that may not go on. An abort, by the heap or an assertion, is another thing.
constexpr int terminated = 77;

// Takes and releases with the n-th allocation of any thread failing, for every n from the one that it is given.
int fail_from(progress& at, body take_and_release) {
  std::set_terminate([] { ::_exit(terminated); });
  auto const own = one_client();
  take_and_release(own[0], new_name());
  for (;; ++at.n) {
    auto const name = new_name();
    bool thrown = false;
    failing_memory::fail_anywhere_after(at.n);
    try {
      take_and_release(own[0], name);
    } catch (std::bad_alloc const&) {
      thrown = true;
    }
    bool const failed = failing_memory::stop();
    if (thrown && !failed) return 1;
    at.threw += thrown;
    take_and_release(own[0], new_name());
    if (!wait_until([&] { return !own[0].get_lock(name).is_locked(); })) return 2;
    at.over = !failed;
    if (!failed) return 0;
  }
}

// How often the process ended, and how often a call threw.
std::pair<int, int> fail_in_children(body take_and_release) {
  auto* const room = ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(room != MAP_FAILED);
  auto& at = *new (room) progress;
  int ended = 0;
  constexpr long most = 2'000;
  for (; !at.over && at.n < most; ++at.n) {
    INFO("allocation " << at.n);
    child_process child([&](child_process::channel&) { return fail_from(at, take_and_release); });
    int const result = child.wait();
    REQUIRE((result == 0 || result == terminated));
    ended += result != 0;
  }
  REQUIRE(at.over);
  return {ended, at.threw};
}

}  // namespace

// First, while this process has no thread: sanitizers let a child of threads make none.
TEST_CASE("case 86: where memory is short a call throws and has not begun, or the process ends", "[server][case-86]") {
  common_server().uri();
  static constexpr body ways[] = {
      [](client const& own, std::string const& name) {
        auto held = own.get_lock(name).acquire();
        held.release();
      },
      [](client const& own, std::string const& name) {
        auto held = own.get_lock(name).async_acquire(asio::use_future).get();
        held.async_release(asio::use_future).get();
      },
      [](client const& own, std::string const& name) {
        auto const both = own.get_multi_lock({own.get_lock(name), own.get_lock(name + " too")});
        auto held = both.acquire();
        held.release();
      },
  };
  for (body const one : ways) {
    auto const [ended, threw] = fail_in_children(one);
    CHECK(ended > 0);
    CHECK(threw > 0);
  }
}

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
