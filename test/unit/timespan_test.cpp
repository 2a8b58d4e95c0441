#include <latchkey/timespan.hpp>
#include <support/catch.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

using latchkey::milliseconds;
using latchkey::timespan;
using namespace std::chrono_literals;

namespace {

template <class Length>
constexpr milliseconds ms(Length length) {
  return timespan(length);
}

using thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
using tiny = std::chrono::duration<std::int64_t, std::atto>;
using fraction = std::chrono::duration<double>;
using unsigned_seconds = std::chrono::duration<std::uint64_t>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

static_assert(std::is_trivially_copyable_v<timespan>);
static_assert(!std::is_constructible_v<timespan, int>);
static_assert(std::is_convertible_v<std::chrono::hours, timespan> && std::is_convertible_v<timespan, milliseconds>);
static_assert(timespan() == 0ms && timespan(1s) == 1000ms && timespan(1s) > 999ms && 800us == timespan(1ms));

}  // namespace

TEST_CASE("a timespan is rounded up to a millisecond", "[unit][base]") {
  CHECK(ms(0us) == 0ms);
  CHECK(ms(1ns) == 1ms);
  CHECK(ms(800us) == 1ms);
  CHECK(ms(1000us) == 1ms);
  CHECK(ms(1001us) == 2ms);
  CHECK(ms(1.5s) == 1500ms);
  CHECK(ms(fraction(1.1)) == 1100ms);
  CHECK(ms(fraction(1.1001)) == 1101ms);
  CHECK(ms(std::chrono::duration<float>(0.25F)) == 250ms);
  CHECK(ms(3min) == 180'000ms);
  CHECK(ms(thirds(1)) == 334ms);
  CHECK(ms(thirds(2)) == 667ms);
  CHECK(ms(thirds(3)) == 1000ms);
  CHECK(ms(tiny(1)) == 1ms);
}

TEST_CASE("a negative timespan is rounded up, too", "[unit][base]") {
  CHECK(ms(-1us) == 0ms);
  CHECK(ms(-1500us) == -1ms);
  CHECK(ms(-1.5s) == -1500ms);
  CHECK(ms(fraction(-0.0001)) == 0ms);
  CHECK(ms(thirds(-1)) == -333ms);
}

TEST_CASE("a timespan saturates", "[unit][base]") {
  CHECK(ms(milliseconds::max()) == milliseconds::max());
  CHECK(ms(milliseconds::min()) == milliseconds::min());
  CHECK(ms(std::chrono::hours::max()) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::int64_t>(most)) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::int64_t>(least)) == milliseconds::min());
  CHECK(ms(std::chrono::nanoseconds::max()) == milliseconds(9'223'372'036'855));
  CHECK(ms(std::chrono::nanoseconds::min()) == milliseconds(-9'223'372'036'854));
  CHECK(ms(unsigned_seconds(std::numeric_limits<std::uint64_t>::max())) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::uint64_t, std::nano>(std::numeric_limits<std::uint64_t>::max())) >=
        milliseconds(18'446'744'073'709));
  CHECK(ms(fraction(1e300)) == milliseconds::max());
  CHECK(ms(fraction(-1e300)) == milliseconds::min());
  CHECK(ms(fraction(std::numeric_limits<double>::infinity())) == milliseconds::max());
  CHECK(ms(fraction(std::numeric_limits<double>::quiet_NaN())) == 0ms);
  CHECK(ms(std::chrono::duration<float>(std::numeric_limits<float>::max())) == milliseconds::max());
}
