#include <support/catch.hpp>
#include <support/unit/show_reply.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/kinds.hpp>
#include <wire/read_write_scripts.hpp>

#include <set>
#include <string>

using namespace latchkey::detail;
using namespace latchkey::test;
using enum outcome::type;

namespace {

constexpr unsigned char both_sides[] = {0, 1};

kind const& rw() { return read_write_kind(); }

item from(ask what, unsigned char mode) {
  item one = everything(what);
  one.mode = mode;
  if (mode == 1) one.field = "id:1:write";
  return one;
}

list question(query what, unsigned char mode) { return question_of(rw(), what, from(ask::none, mode)); }

outcome::type meaning(ask what, reply const& answer, std::int64_t target = 1) {
  return latchkey::test::meaning(rw(), what, answer, target).what;
}

std::string const channel = "redisson_rwlock:{orders}";

}  // namespace

TEST_CASE("read/write lock: names are Redisson's", "[unit][wire]") {
  CHECK(rw().channel("orders", "id:1") == channel);
  CHECK(rw().channel("{eu}:orders", "id:1") == "redisson_rwlock:{eu}:orders");
  CHECK(rw().field("id", 42, 0) == "id:42");
  CHECK(rw().field("id", 42, 1) == "id:42:write");
}

TEST_CASE("read/write lock: a request carries its side, and the keys and arguments that its script reads",
          "[unit][wire]") {
  for (unsigned char const mode : both_sides) {
    std::string const side = mode == 1 ? "1" : "0", field = mode == 1 ? "id:1:write" : "id:1";
    for (ask what : {ask::acquire, ask::renew, ask::extend}) CHECK(keys_of(rw(), from(what, mode)) == list{"orders"});
    for (ask what : {ask::release, ask::force_unlock})
      CHECK(keys_of(rw(), from(what, mode)) == list{"orders", channel});
    for (ask what : {ask::acquire, ask::release})
      CHECK(arguments_of(rw(), from(what, mode)) == list{side, field, "3", "30000"});
    for (ask what : {ask::renew, ask::extend})
      CHECK(arguments_of(rw(), from(what, mode)) == list{side, field, "30000"});
    CHECK(arguments_of(rw(), from(ask::force_unlock, mode)) == list{side});
  }
}

TEST_CASE("read/write lock: both sides share their scripts, so that items of both share a call", "[unit][wire]") {
  std::set<std::string> texts;
  for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
    texts.insert(std::string(rw().script_for(what).text()));
  CHECK(texts.size() == 5);
  for (ask what : {ask::none, ask::hand_off, ask::leave}) CHECK_THROWS_AS(rw().script_for(what), std::logic_error);
}

TEST_CASE("read/write lock: every answer has its meaning", "[unit][wire]") {
  CHECK(meaning(ask::acquire, integer(verdict::granted)) == granted);
  CHECK(meaning(ask::acquire, integer(verdict::granted), 2) == granted);
  CHECK(meaning(ask::acquire, integer(verdict::gone), 2) == gone);
  CHECK(meaning(ask::acquire, integer(1'234)) == busy);
  CHECK(meaning(ask::acquire, integer(-1)) == busy);
  CHECK(meaning(ask::release, integer(verdict::released), 0) == released);
  CHECK(meaning(ask::release, integer(verdict::released_unpublished), 0) == released);
  CHECK(meaning(ask::release, integer(verdict::still_held), 2) == still_held);
  for (std::int64_t target : {0, 2}) CHECK(meaning(ask::release, integer(verdict::absent), target) == absent);
  for (ask what : {ask::renew, ask::extend}) {
    CHECK(meaning(what, integer(verdict::extended)) == extended);
    CHECK(meaning(what, integer(verdict::absent)) == absent);
  }
  CHECK(meaning(ask::force_unlock, integer(verdict::released)) == released);
  CHECK(meaning(ask::force_unlock, integer(verdict::absent)) == absent);
  for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
    CHECK(meaning(what, bulk("OOM")) == refused);
}

TEST_CASE("G77: read/write lock: an answer of the wrong shape is none", "[unit][wire]") {
  std::vector<reply> const wrong = {reply{}, status("OK"), array(), integer(7)};
  for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
    for (auto const& answer : wrong)
      if (what != ask::acquire || !answer.is_integer()) CHECK(meaning(what, answer, 0) == malformed);
  CHECK(meaning(ask::acquire, integer(verdict::gone), 1) == malformed);
  CHECK(meaning(ask::acquire, integer(500), 2) == malformed);
  CHECK(meaning(ask::hand_off, integer(verdict::granted)) == malformed);
}

TEST_CASE("read/write lock: a question is one command about one side", "[unit][wire]") {
  CHECK(question(query::is_locked, 0) == list{"EVAL", read_write_is_read, "1", "orders"});
  CHECK(question(query::is_locked, 1) == list{"HGET", "orders", "mode"});
  CHECK(question(query::is_held_by, 0) == list{"HEXISTS", "orders", "id:1"});
  CHECK(question(query::is_held_by, 1) == list{"HEXISTS", "orders", "id:1:write"});
  CHECK(question(query::hold_count, 1) == list{"HGET", "orders", "id:1:write"});
  CHECK(question(query::time_to_live, 1) == list{"PTTL", "orders"});
}

TEST_CASE("read/write lock: is_locked understands a number and a mode, and nothing else", "[unit][wire]") {
  auto const locked = [](reply const& answer) {
    std::int64_t value = -1;
    return rw().read_query(query::is_locked, answer, value) ? static_cast<int>(value) : -1;
  };
  CHECK(locked(integer(1)) == 1);
  CHECK(locked(integer(0)) == 0);
  CHECK(locked(bulk("write")) == 1);
  CHECK(locked(bulk("read")) == 0);
  CHECK(locked(reply{}) == 0);
  CHECK(locked(integer(2)) == -1);
  CHECK(locked(bulk("1")) == -1);
  CHECK(locked(status("write")) == -1);
  std::int64_t value = -1;
  CHECK(rw().read_query(query::hold_count, bulk("3"), value));
  CHECK(value == 3);
}

TEST_CASE("read/write lock: a message of either side wakes, and nothing else does", "[unit][wire]") {
  for (char const* payload : {"0", "1"}) CHECK(rw().wakes(payload));
  for (char const* junk : {"", "2", "00", "01", "-1", "read"}) CHECK_FALSE(rw().wakes(junk));
}

TEST_CASE("B23: read/write lock: who writes may read, who only reads would wait for himself", "[unit][wire]") {
  struct row {
    int reads, writes;
    kind::admission read, write;
  };
  using enum kind::admission;
  for (auto const& [reads, writes, read, write] : {row{0, 0, queue, queue}, row{1, 0, at_once, would_deadlock},
                                                   row{0, 2, at_once, at_once}, row{3, 1, at_once, at_once}}) {
    int const live[2] = {reads, writes};
    CHECK(rw().admit(0, live) == read);
    CHECK(rw().admit(1, live) == write);
  }
}

TEST_CASE("read/write lock: readers share, a writer shares with nobody", "[unit][wire]") {
  auto const& rules = rw().rules();
  CHECK(rules.exclusive);
  CHECK(rules.modes == 2);
  CHECK(rules.shares(0, 0));
  for (unsigned char const other : both_sides) CHECK_FALSE((rules.shares(1, other) || rules.shares(other, 1)));
}
