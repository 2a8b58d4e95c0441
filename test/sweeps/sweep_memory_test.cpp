// Case 86, as far as it goes: memory that is short once, at every place where a caller's own thread asks for it before
// anything has begun. docs/reliability-cases.md says what is not promised.
#include <support/catch.hpp>
#include <sweeps/failing_memory.hpp>
#include <sweeps/lock_kinds.hpp>
#include <sweeps/sweep_config.hpp>

#include <filesystem>
#include <iterator>
#include <new>
#include <optional>

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
