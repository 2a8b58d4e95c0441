#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace wire_reentrant {

using namespace latchkey::detail;
using namespace latchkey::test;
using enum outcome::type;

namespace {

std::string const channel = "redisson_lock__channel:{orders}";

}  // namespace

TEST_CASE("a request carries the keys and arguments that its script reads, and no more", "[unit][wire]") {
  struct row {
    ask what;
    list keys;
    list arguments;
  };
  auto const [what, keys, arguments] = GENERATE_COPY(values<row>({
      {ask::acquire, {"orders"}, {"id:1", "3", "30000"}},
      {ask::release, {"orders"}, {channel, "id:1", "3", "30000"}},
      {ask::hand_off, {"orders"}, {channel, "id:1", "id:2", "30000"}},
      {ask::renew, {"orders"}, {"id:1", "30000"}},
      {ask::extend, {"orders"}, {"id:1", "30000"}},
      {ask::force_unlock, {"orders"}, {channel}},
  }));
  words command;
  command.add("before");
  reentrant_kind().add_keys(everything(what), command);
  auto expected = keys;
  expected.insert(expected.begin(), "before");
  CHECK(listed(command) == expected);
  CHECK(arguments_of(reentrant_kind(), what) == arguments);
}

TEST_CASE("a question is one plain command", "[unit][wire]") {
  struct row {
    query what;
    list command;
  };
  auto const [what, expected] = GENERATE(values<row>({
      {query::is_locked, {"EXISTS", "orders"}},
      {query::is_held_by, {"HEXISTS", "orders", "id:1"}},
      {query::hold_count, {"HGET", "orders", "id:1"}},
      {query::time_to_live, {"PTTL", "orders"}},
  }));
  CHECK(question_of(reentrant_kind(), what) == expected);
}

TEST_CASE("an owner who holds the lock never queues behind others", "[unit][wire]") {
  int live[1] = {0};
  CHECK(reentrant_kind().admit(0, live) == kind::admission::queue);
  live[0] = 1;
  CHECK(reentrant_kind().admit(0, live) == kind::admission::at_once);
  live[0] = 7;
  CHECK(reentrant_kind().admit(0, live) == kind::admission::at_once);
}

TEST_CASE("C33: only an unlock message wakes a waiter", "[unit][wire]") {
  CHECK(reentrant_kind().wakes("0"));
  for (std::string const junk : {"", "1", "00", "-0", "0 ", "unlock", "nan"}) CHECK_FALSE(reentrant_kind().wakes(junk));
  CHECK_FALSE(reentrant_kind().wakes(std::string_view("0\0", 2)));
}

TEST_CASE("the reentrant lock is exclusive, handed off, and has a channel", "[unit][wire]") {
  auto const& rules = reentrant_kind().rules();
  CHECK(rules.exclusive);
  CHECK(rules.hand_off);
  CHECK_FALSE(rules.grant_wakes_next);
  CHECK_FALSE(rules.own_channel);
  CHECK_FALSE(rules.polls);
  CHECK(rules.modes == 1);
  CHECK_FALSE(rules.name.empty());
}

namespace {

constexpr auto largest = std::numeric_limits<std::int64_t>::max();

outcome read(ask what, reply const& answer, std::int64_t target = 1) {
  return meaning(reentrant_kind(), what, answer, target);
}

// Every element that a script of ours could give, and some that none gives.
std::vector<reply> elements() {
  std::vector<reply> made;
  for (std::int64_t value = -12; value <= 3; ++value) made.push_back(integer(value));
  for (auto const value : {largest, largest - 1, std::numeric_limits<std::int64_t>::min()})
    made.push_back(integer(value));
  made.push_back({});
  made.push_back(bulk("OOM"));
  made.push_back(bulk("-3"));
  made.push_back(error("ERR"));
  made.push_back(status("OK"));
  made.push_back(status("-3"));
  made.push_back(array({}));
  made.push_back(array({integer(-3)}));
  return made;
}

}  // namespace

TEST_CASE("every answer of an acquire has its meaning", "[unit][wire]") {
  CHECK(read(ask::acquire, integer(verdict::granted)).what == granted);
  CHECK(read(ask::acquire, integer(verdict::granted), 2).what == granted);
  CHECK(read(ask::acquire, integer(verdict::gone), 2).what == gone);
  auto const held = read(ask::acquire, integer(1'234));
  CHECK(held.what == busy);
  CHECK(held.hint == 1'234);
  auto const endless = read(ask::acquire, integer(-1));
  CHECK(endless.what == busy);
  CHECK(endless.hint == -1);
  auto const no = read(ask::acquire, bulk("OOM command not allowed\r\n"));
  CHECK(no.what == refused);
  CHECK(no.text == "OOM command not allowed");
}

TEST_CASE("only an acquire of a bundle may be left untried", "[unit][wire]") {
  item one;
  one.what = ask::acquire;
  one.bundled = true;
  for (std::int64_t const target : {1, 2}) {
    one.target = target;
    CHECK(reentrant_kind().read(ask::acquire, one, integer(verdict::untried)).what == untried);
    CHECK(reentrant_kind().read(ask::acquire, one, integer(verdict::granted)).what == granted);
    CHECK(read(ask::acquire, integer(verdict::untried), target).what == malformed);
  }
  CHECK(reentrant_kind().read(ask::release, one, integer(verdict::untried)).what == malformed);
  CHECK(reentrant_kind().acquire_all()->sha() != reentrant_kind().script_for(ask::acquire).sha());
}

TEST_CASE("G77: an answer to acquire that makes no sense is no grant", "[unit][wire]") {
  auto const expired = read(ask::acquire, integer(-2));
  CHECK(expired.what == busy);
  CHECK(expired.hint == 0);
  CHECK(read(ask::acquire, integer(largest)).what == malformed);
  CHECK(read(ask::acquire, integer(largest - 1)).what == malformed);
  // A foreign holder may still set the longest time that PEXPIRE takes.
  CHECK(read(ask::acquire, integer(largest - 2'000'000'000'000)).what == busy);
  CHECK(read(ask::acquire, integer(verdict::gone), 1).what == malformed);
  CHECK(read(ask::acquire, integer(500), 2).what == malformed);
  CHECK(read(ask::acquire, integer(-2), 2).what == malformed);
  CHECK(read(ask::acquire, bulk("granted")).what == refused);
}

TEST_CASE("every answer of a release has its meaning", "[unit][wire]") {
  CHECK(read(ask::release, integer(verdict::released), 0).what == released);
  CHECK_FALSE(read(ask::release, integer(verdict::released), 0).not_published);
  auto const silent = read(ask::release, integer(verdict::released_unpublished), 0);
  CHECK(silent.what == released);
  CHECK(silent.not_published);
  CHECK(read(ask::release, integer(verdict::absent), 0).what == absent);
  CHECK(read(ask::release, integer(verdict::absent), 2).what == absent);
  CHECK(read(ask::release, integer(verdict::still_held), 2).what == still_held);
  CHECK(read(ask::release, bulk("ERR x"), 0).what == refused);
  CHECK(read(ask::release, bulk("ERR x"), 2).what == refused);
  CHECK(read(ask::release, integer(verdict::still_held), 0).what == malformed);
  CHECK(read(ask::release, integer(verdict::released), 2).what == malformed);
}

TEST_CASE("every answer of a renewal, an extension and a forced unlock has its meaning", "[unit][wire]") {
  for (auto const what : {ask::renew, ask::extend}) {
    CHECK(read(what, integer(verdict::extended)).what == extended);
    CHECK(read(what, integer(verdict::absent)).what == absent);
    CHECK(read(what, bulk("ERR x")).what == refused);
    CHECK(read(what, integer(verdict::granted)).what == malformed);
  }
  CHECK(read(ask::force_unlock, integer(verdict::released)).what == released);
  CHECK(read(ask::force_unlock, integer(verdict::released_unpublished)).not_published);
  CHECK(read(ask::force_unlock, integer(verdict::absent)).what == absent);
  CHECK(read(ask::force_unlock, bulk("WRONGTYPE x")).what == refused);
}

TEST_CASE("a hand-off answers for the old owner and for the new one", "[unit][wire]") {
  auto const done = read(ask::hand_off, array({integer(verdict::released), integer(verdict::granted)}));
  CHECK(done.what == released);
  CHECK(done.grant == granted);

  auto const lapsed = read(ask::hand_off, array({integer(verdict::absent), integer(verdict::granted)}));
  CHECK(lapsed.what == absent);
  CHECK(lapsed.grant == granted);

  auto const taken = read(ask::hand_off, array({integer(verdict::absent), integer(900)}));
  CHECK(taken.what == absent);
  CHECK(taken.grant == busy);
  CHECK(taken.hint == 900);

  auto const freed = read(ask::hand_off, array({integer(verdict::released_unpublished), bulk("OOM x")}));
  CHECK(freed.what == released);
  CHECK(freed.not_published);
  CHECK(freed.grant == refused);
  CHECK(freed.text == "OOM x");

  auto const nothing = read(ask::hand_off, array({bulk("WRONGTYPE x"), bulk("WRONGTYPE x")}));
  CHECK(nothing.what == refused);
  CHECK(nothing.grant == refused);
  CHECK(nothing.text == "WRONGTYPE x");
}

TEST_CASE("G77: half an answer of a hand-off is none", "[unit][wire]") {
  for (auto const& answer :
       {array({}), array({integer(verdict::released)}),
        array({integer(verdict::released), integer(verdict::granted), integer(verdict::granted)}),
        array({integer(verdict::released), integer(verdict::gone)}), array({integer(7), integer(verdict::granted)}),
        array({array({}), integer(verdict::granted)}), integer(verdict::granted), reply{}}) {
    INFO(show(answer));
    auto const got = read(ask::hand_off, answer);
    CHECK(got.what == malformed);
    CHECK(got.grant == malformed);
  }
}

TEST_CASE("an error in the place of an element refuses that item with its words", "[unit][wire]") {
  for (auto const what : {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock}) {
    auto const got = read(what, error("READONLY You can't write"));
    CHECK(got.what == refused);
    CHECK(got.text == "READONLY You can't write");
    if (what == ask::hand_off) CHECK(got.grant == refused);
  }
}

TEST_CASE("G77: nothing but the one verdict grants", "[unit][wire]") {
  for (auto const what :
       {ask::none, ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock, ask::leave})
    for (std::int64_t target : {0, 1, 2})
      for (auto const& element : elements()) {
        INFO(static_cast<int>(what) << " " << target << " " << show(element));
        auto const got = read(what, element, target);
        CHECK((got.what == granted) == (what == ask::acquire && says(element, verdict::granted)));
        CHECK(got.grant != granted);
        CHECK((got.what == busy || got.hint == 0));
        CHECK((got.what == refused || got.text.empty()));
      }
  for (auto const& old : elements())
    for (auto const& fresh : elements()) {
      auto const got = read(ask::hand_off, array({old, fresh}));
      INFO(show(old) << " " << show(fresh));
      CHECK(got.what != granted);
      CHECK((got.grant != granted || says(fresh, verdict::granted)));
      CHECK(((got.what == malformed) == (got.grant == malformed)));
    }
}

TEST_CASE("a verdict is never a time to live", "[unit][wire]") {
  for (auto const value : {verdict::granted, verdict::gone, verdict::released, verdict::released_unpublished,
                           verdict::still_held, verdict::absent, verdict::extended, verdict::untried}) {
    std::int64_t hint = 0;
    CHECK_FALSE(read_hint(integer(value), hint));
  }
}

TEST_CASE("an answer to a question has its shape or is refused", "[unit][wire]") {
  auto const answered = [](query what, reply const& answer) {
    std::int64_t value = -99;
    return reentrant_kind().read_query(what, answer, value) ? value : -99;
  };
  for (auto const what : {query::is_locked, query::is_held_by}) {
    CHECK(answered(what, integer(0)) == 0);
    CHECK(answered(what, integer(1)) == 1);
    for (auto const& odd : {integer(2), integer(-1), reply{}, bulk("1"), error("ERR")})
      CHECK(answered(what, odd) == -99);
  }
  CHECK(answered(query::hold_count, reply{}) == 0);
  CHECK(answered(query::hold_count, bulk("3")) == 3);
  CHECK(answered(query::hold_count, bulk("9223372036854775807")) == largest);
  for (auto const& odd : {bulk(""), bulk("x"), bulk("3x"), bulk("-1"), bulk("9223372036854775808"), integer(3),
                          error("WRONGTYPE"), array({})})
    CHECK(answered(query::hold_count, odd) == -99);
  CHECK(answered(query::time_to_live, integer(-2)) == -2);
  CHECK(answered(query::time_to_live, integer(-1)) == -1);
  CHECK(answered(query::time_to_live, integer(29'999)) == 29'999);
  for (auto const& odd : {integer(-3), reply{}, bulk("5")}) CHECK(answered(query::time_to_live, odd) == -99);
}

}  // namespace wire_reentrant
