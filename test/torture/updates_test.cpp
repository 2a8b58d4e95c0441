// The numbers that are counted under locks while masters change.
#include <support/catch.hpp>
#include <torture/updates.hpp>
#include <wire/slot.hpp>

using namespace latchkey::torture;

TEST_CASE("a counter refuses who comes with an older token than it has seen", "[torture]") {
  counter one;
  CHECK(one.read(5) == 0u);
  CHECK(one.write(1, 5) == 0u);
  CHECK(one.read(7) == 1u);
  CHECK_FALSE(one.write(2, 5));  // somebody has read since
  CHECK_FALSE(one.read(6));
  CHECK(one.write(2, 7) == 1u);
  CHECK(one.value() == 2);
}

TEST_CASE("without tokens the later write stands", "[torture]") {
  counter one;
  auto const first = one.read(0), next = one.read(0);
  REQUIRE((first && next));
  CHECK(one.write(*first + 1, 0) == 0u);
  CHECK(one.write(*next + 1, 0) == 1u);  // that is lost
  CHECK(one.value() == 1);
}

TEST_CASE("the counters of every way are spread over the masters of a cluster", "[torture]") {
  for (std::size_t w = 0; w < ways; ++w)
    for (std::size_t i = 0; i < counters; ++i)
      CHECK(latchkey::detail::slot_of(counter_name(static_cast<way>(w), i)) * counters / latchkey::detail::slot_count ==
            i);
}
