#include <machine/slot_map.hpp>
#include <support/catch.hpp>

using namespace latchkey;

namespace {

using range = detail::slot_map::range;
using rise = detail::slot_map::rise;
using detail::node_address;

}  // namespace

TEST_CASE("slot map: a slot is taken only with a greater epoch", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1}, b{"b", 1}, c{"c", 1};
  std::vector<detail::slot_map::change> changes;
  std::vector<range> const low{{0, 99}}, high{{100, 16383}}, one{{50, 50}}, none;
  CHECK(map.at(5) == nullptr);
  CHECK(map.claim("id-a", a, 1, low, changes));
  CHECK(map.claim("id-b", b, 2, high, changes));
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].from.host.empty());
  CHECK(*map.at(50) == a);
  CHECK(map.slots_of(b) == 16284);
  changes.clear();
  CHECK(map.claim("id-a", a, 1, low, changes));
  CHECK_FALSE(map.claim("id-c", c, 1, one, changes));  // two of one epoch
  CHECK_FALSE(map.claim("id-c", c, 0, one, changes));
  CHECK(changes.empty());
  CHECK(map.claim("id-b", b, 3, one, changes));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].from == a);
  CHECK(changes[0].slots == one);
  CHECK(map.slots_of(a) == 99);
  CHECK(map.slots_of(b) == 16285);
  changes.clear();
  CHECK(map.claim("id-a", a, 1, low, changes));  // most of it is true
  CHECK(changes.empty());
  CHECK(*map.at(50) == b);
  map.moved(60, c);
  CHECK(*map.at(60) == c);
  CHECK(map.claim("id-a", a, 1, low, changes));  // has not heard of it
  CHECK(changes.empty());
  CHECK(*map.at(60) == c);
  CHECK(map.claim("id-a", a, 4, low, changes));
  CHECK(map.slots_of(a) == 100);
  CHECK(map.claim("id-b", b, 2, none, changes));
}

TEST_CASE("slot map: a node that has what it had, by a greater epoch, was elected again", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1}, b{"b", 1};
  std::vector<detail::slot_map::change> changes;
  std::vector<range> const low{{0, 99}}, high{{100, 16383}}, one{{50, 50}}, more{{50, 50}, {100, 16383}};
  CHECK(map.risen("id-a", a, 1, low) == rise::none);
  map.claim("id-a", a, 1, low, changes);
  map.claim("id-b", b, 2, high, changes);
  CHECK(map.risen("id-a", a, 1, low) == rise::none);
  CHECK(map.risen("id-a", a, 0, low) == rise::none);
  CHECK(map.risen("id-a", a, 3, {}) == rise::none);
  CHECK(map.risen("id-a", a, 3, low) == rise::elected);
  CHECK(map.risen("id-b", b, 3, high) == rise::elected);
  CHECK(map.risen("id-x", b, 3, high) == rise::none);
  CHECK(map.risen("id-b", b, 3, more) == rise::perhaps);  // that takes one from another
  map.moved(50, b);
  CHECK(map.risen("id-b", b, 3, more) == rise::perhaps);  // which is known already
  CHECK(map.risen("id-b", b, 3, one) == rise::perhaps);   // and may have been elected since
  CHECK(map.risen("id-b", b, 1, one) == rise::none);
  CHECK(map.risen("id-b", a, 3, one) == rise::none);
  map.claim("id-b", b, 3, more, changes);
  CHECK(map.risen("id-b", b, 3, more) == rise::none);
  CHECK(map.risen("id-b", b, 4, more) == rise::elected);
}

TEST_CASE("slot map: what nodes say of each other hides no election", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1}, b{"b", 1};
  std::vector<detail::slot_map::change> changes;
  std::vector<range> const low{{0, 99}}, one{{50, 50}}, more{{50, 50}, {100, 16383}};
  map.claim("id-a", a, 1, low, changes);
  map.claim("id-b", b, 2, std::vector<range>{{100, 16383}}, changes);
  changes.clear();
  CHECK_FALSE(map.moved(50, b));
  CHECK_FALSE(map.moved(50, a));  // to and fro
  CHECK_FALSE(map.moved(50, b));
  CHECK(map.moved(50, {"c", 1}));
  CHECK_FALSE(map.moved(50, a));
  CHECK(map.risen("id-a", a, 3, low) == rise::elected);
  map.moved(50, b);
  CHECK(map.claim("id-b", b, 2, more, changes));
  CHECK(map.claim("id-b", b, 3, more, changes));
  REQUIRE(changes.size() == 1);  // of which nothing was known but that word
  CHECK(changes[0].from == a);
  CHECK(changes[0].to == b);
  CHECK(changes[0].slots == one);
  map.moved(50, a);
  map.readdress(b, {"c", 1});
  map.moved(50, {"c", 1});
  CHECK(map.risen("id-b", {"c", 1}, 4, one) == rise::elected);
}

TEST_CASE("slot map: what nobody has claimed", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1};
  std::vector<detail::slot_map::change> changes;
  CHECK(map.uncovered() == std::vector<range>{{0, 16383}});
  map.claim("id-a", a, 1, std::vector<range>{{0, 9}, {11, 99}, {101, 16382}}, changes);
  CHECK(map.uncovered() == std::vector<range>{{10, 10}, {100, 100}, {16383, 16383}});
  map.claim("id-a", a, 1, std::vector<range>{{0, 16383}}, changes);
  CHECK(map.uncovered().empty());
}

TEST_CASE("slot map: a node that has moved to another address keeps its slots", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1}, b{"b", 1}, again{"c", 1};
  std::vector<detail::slot_map::change> changes;
  std::vector<range> const low{{0, 99}}, high{{100, 16383}};
  map.claim("id-a", a, 1, low, changes);
  map.claim("id-b", b, 2, high, changes);
  CHECK(map.left_by("id-a", a, 1) == nullptr);
  CHECK(map.left_by("id-x", again, 1) == nullptr);
  CHECK(map.left_by("id-a", again, 0) == nullptr);
  REQUIRE(map.left_by("id-a", again, 1) != nullptr);
  auto const change = map.readdress(a, again);
  CHECK(change.slots == low);
  CHECK(*map.at(0) == again);
  CHECK(map.slots_of(a) == 0);
  changes.clear();
  CHECK(map.claim("id-a", again, 1, low, changes));
  CHECK(changes.empty());
}

TEST_CASE("slot map: any claim takes the slots of an owner that is given up", "[unit][machine]") {
  detail::slot_map map;
  node_address const a{"a", 1}, b{"b", 1}, c{"c", 1};
  std::vector<detail::slot_map::change> changes;
  std::vector<range> const low{{0, 99}}, high{{100, 16383}}, one{{60, 60}}, all{{0, 16383}}, word{{150, 150}};
  map.claim("id-a", a, 3, high, changes);
  map.claim("id-b", b, 1, low, changes);
  map.moved(150, c);
  CHECK(map.standing_against("id-a", b, 3, all).empty());  // the node itself
  CHECK(map.standing_against("id-b", b, 4, all).empty());
  CHECK(map.standing_against("id-b", b, 1, low).empty());
  auto const found = map.standing_against("id-b", b, 1, all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].of == detail::slot_map::claimant{"id-a", a, 3});
  CHECK(found[0].slots == high);
  auto other = found[0].of;
  other.epoch = 2;
  map.give_up(other);
  CHECK_FALSE(map.claim("id-b", b, 1, high, changes));
  map.give_up(found[0].of);
  CHECK(*map.at(200) == a);  // until somebody claims it
  CHECK(*map.at(150) == c);
  CHECK(map.standing_against("id-b", b, 0, high).empty());
  CHECK(map.risen("id-x", a, 0, high) == rise::perhaps);  // one is elsewhere
  CHECK(map.risen("id-x", c, 0, word) == rise::perhaps);
  changes.clear();
  CHECK(map.claim("id-b", b, 0, high, changes));
  REQUIRE(changes.size() == 2);
  CHECK((changes[0].from == a && changes[1].from == c));
  CHECK(map.slots_of(a) + map.slots_of(c) == 0);
  CHECK(map.epoch_of(b) == 1);
  CHECK_FALSE(map.claim("id-c", c, 0, one, changes));
}
