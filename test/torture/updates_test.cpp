// The numbers that are counted under locks while masters change.
#include <support/catch.hpp>
#include <torture/updates.hpp>
#include <wire/cluster.hpp>

using namespace latchkey::torture;

TEST_CASE("a counter refuses who comes with an older token than it has seen", "[torture]") {
  counter one;
  credential const first{.token = 5}, between{.token = 6}, last{.token = 7};
  CHECK(one.read(first) == 0u);
  CHECK(one.write(1, first) == 0u);
  CHECK(one.read(last) == 1u);
  CHECK_FALSE(one.write(2, first));  // somebody has read since
  CHECK_FALSE(one.read(between));
  CHECK(one.write(2, last) == 1u);
  CHECK(one.value() == 2);
}

TEST_CASE("a counter refuses a token that it has seen from another holder", "[torture]") {
  counter one;
  credential const before{.token = 5, .holder = 1}, again{.token = 5, .holder = 2};
  CHECK(one.read(before) == 0u);
  CHECK_FALSE(one.read(again));
  CHECK_FALSE(one.write(9, again));
  CHECK(one.write(1, before) == 0u);
  CHECK(one.read({.token = 6, .holder = 2}) == 1u);
}

TEST_CASE("without tokens the later write stands", "[torture]") {
  counter one;
  auto const first = one.read({.holder = 1}), next = one.read({.holder = 2});
  REQUIRE((first && next));
  CHECK(one.write(*first + 1, {.holder = 1}) == 0u);
  CHECK(one.write(*next + 1, {.holder = 2}) == 1u);  // that is lost
  CHECK(one.value() == 1);
}

TEST_CASE("the counters of every way are spread over the masters of a cluster", "[torture]") {
  for (std::size_t w = 0; w < ways; ++w)
    for (std::size_t i = 0; i < counters; ++i)
      CHECK(latchkey::detail::slot_of(counter_name(static_cast<way>(w), i)) * counters / latchkey::detail::slot_count ==
            i);
}
