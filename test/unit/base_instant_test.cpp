#include <base/instant.hpp>
#include <support/catch.hpp>

using namespace latchkey::detail;
using namespace std::chrono_literals;

TEST_CASE("A10: a time that does not fit the clock is never", "[unit][base]") {
  instant const start(5s);
  CHECK(after(start, milliseconds::max()) == never);
  CHECK(after(start, nanoseconds::max()) == never);
  CHECK(after(start, nanoseconds::max() - 5s) == never);
  CHECK(after(start, nanoseconds::max() - 6s) < never);
  CHECK(after(never, 1ms) == never);
  CHECK(after(start, 10ms) == start + 10ms);
  CHECK(after(start, -10ms) == start - 10ms);
  CHECK(after(start, milliseconds::min()) < start);
}

TEST_CASE("what is left is rounded up and never negative", "[unit][base]") {
  instant const now(5s);
  CHECK(left(now, now) == 0ms);
  CHECK(left(now, now - 1ns) == 0ms);
  CHECK(left(now, now + 1ns) == 1ms);
  CHECK(left(now, now + 2ms) == 2ms);
  CHECK(left(now, never) == milliseconds::max());
}
