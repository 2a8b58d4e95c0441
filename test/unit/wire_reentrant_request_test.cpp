#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>

#include <string>

using namespace latchkey::detail;
using namespace latchkey::test;

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
      {ask::release, {"orders", channel}, {"id:1", "3", "30000"}},
      {ask::hand_off, {"orders", channel}, {"id:1", "id:2", "30000"}},
      {ask::renew, {"orders"}, {"id:1", "30000"}},
      {ask::extend, {"orders"}, {"id:1", "30000"}},
      {ask::force_unlock, {"orders", channel}, {}},
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
