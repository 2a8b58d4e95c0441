#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

#include <set>
#include <stdexcept>
#include <string>

namespace wire_fair_read_write {

using namespace latchkey::detail;
using namespace latchkey::test;
using enum outcome::type;

namespace {

outcome meaning(ask what, reply const& said, std::int64_t target = 1) {
  return latchkey::test::meaning(fair_kind(), what, said, target);
}

list const all_keys{"orders", "redisson_lock_queue:{orders}", "redisson_lock_timeout:{orders}"};
std::string const fair_channel = "redisson_lock__channel:{orders}";

}  // namespace

TEST_CASE("fair lock: a request carries the keys and arguments that its script reads", "[unit][wire]") {
  struct row {
    ask what;
    list keys;
    list arguments;
  };
  auto const [what, keys, arguments] = GENERATE_COPY(values<row>({
      {ask::acquire, all_keys, {fair_channel, "id:1", "3", "30000", "300000", "0"}},
      {ask::release, all_keys, {fair_channel, "id:1", "3", "30000"}},
      {ask::hand_off, all_keys, {fair_channel, "id:1", "id:2", "30000", "300000", "0"}},
      {ask::renew, {"orders"}, {"id:1", "30000"}},
      {ask::extend, {"orders"}, {"id:1", "30000"}},
      {ask::force_unlock, all_keys, {fair_channel}},
      {ask::leave, all_keys, {fair_channel, "id:1", "300000"}},
  }));
  CHECK(keys_of(fair_kind(), what) == keys);
  CHECK(arguments_of(fair_kind(), what) == arguments);
}

TEST_CASE("fair lock: who waits says so, who tries once does not", "[unit][wire]") {
  auto one = everything(ask::acquire);
  one.enters_line = true;
  CHECK(arguments_of(fair_kind(), one).back() == "1");
}

TEST_CASE("fair lock: renewals share the reentrant lock's calls", "[unit][wire]") {
  CHECK(&fair_kind().script_for(ask::renew) == &reentrant_renew());
  CHECK(&fair_kind().script_for(ask::extend) == &reentrant_extend());
  CHECK(&fair_kind().script_for(ask::acquire) == &fair_acquire());
  CHECK(&fair_kind().script_for(ask::release) == &fair_release());
  CHECK(&fair_kind().script_for(ask::hand_off) == &fair_hand_off());
  CHECK(&fair_kind().script_for(ask::force_unlock) == &fair_force_unlock());
  CHECK(&fair_kind().script_for(ask::leave) == &fair_leave());
  CHECK_THROWS_AS(fair_kind().script_for(ask::none), std::logic_error);
}

TEST_CASE("fair lock: each waiter has a channel of its own", "[unit][wire]") {
  CHECK(fair_kind().channel("orders", "id:1") == "redisson_lock__channel:{orders}:id:1");
  CHECK(fair_kind().channel("{eu}:orders", "id:1") == "redisson_lock__channel:{eu}:orders:id:1");
  CHECK(fair_kind().field("0b1c", 42, 0) == "0b1c:42");
  CHECK(fair_kind().wakes("0"));
  for (std::string const junk : {"", "1", "00", "0 "}) CHECK_FALSE(fair_kind().wakes(junk));
}

TEST_CASE("fair lock: every answer has its meaning", "[unit][wire]") {
  using enum outcome::type;
  CHECK(meaning(ask::acquire, integer(verdict::granted)).what == granted);
  CHECK(meaning(ask::acquire, integer(verdict::gone), 2).what == gone);
  for (std::int64_t const hint : {-1, 0, 20, 500}) {
    auto const held = meaning(ask::acquire, integer(hint));
    CHECK(held.what == busy);
    CHECK(held.hint == hint);
  }
  CHECK(meaning(ask::acquire, bulk("OOM no memory")).what == refused);
  CHECK(meaning(ask::release, integer(verdict::released), 0).what == released);
  CHECK(meaning(ask::release, integer(verdict::released_unpublished), 0).not_published);
  CHECK(meaning(ask::release, integer(verdict::absent), 0).what == absent);
  CHECK(meaning(ask::release, integer(verdict::still_held), 1).what == still_held);
  auto const both = [](verdict old_hold, std::int64_t new_hold) {
    return array({integer(old_hold), integer(new_hold)});
  };
  auto const passed_on = meaning(ask::hand_off, both(verdict::released, -3));
  CHECK(passed_on.what == released);
  CHECK(passed_on.grant == granted);
  auto const not_his_turn = meaning(ask::hand_off, both(verdict::released, 20));
  CHECK(not_his_turn.what == released);
  CHECK(not_his_turn.grant == busy);
  CHECK(not_his_turn.hint == 20);
  CHECK(meaning(ask::renew, integer(verdict::extended)).what == extended);
  CHECK(meaning(ask::extend, integer(verdict::absent)).what == absent);
  CHECK(meaning(ask::force_unlock, integer(verdict::released)).what == released);
  CHECK(meaning(ask::leave, integer(verdict::released)).what == released);
  CHECK(meaning(ask::leave, integer(verdict::absent)).what == absent);
  auto const no = meaning(ask::leave, bulk("WRONGTYPE of another type\r\n"));
  CHECK(no.what == refused);
  CHECK(no.text == "WRONGTYPE of another type");
}

TEST_CASE("fair lock: an answer that makes no sense proves nothing", "[unit][wire]") {
  using enum outcome::type;
  for (ask const what :
       {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock, ask::leave}) {
    reply none, list;
    list.kind = reply::type::array;
    for (auto const& wrong : {none, list, status("OK"), integer(-100), integer(-4)})
      CHECK(meaning(what, wrong, what == ask::release ? 0 : 1).what == malformed);
  }
  for (std::int64_t const hint : {0, 1, 30'000}) {
    CHECK(meaning(ask::leave, integer(hint)).what == malformed);
    CHECK(meaning(ask::release, integer(hint), 0).what == malformed);
    CHECK(meaning(ask::acquire, integer(hint), 2).what == malformed);
  }
}

TEST_CASE("fair lock: an owner who holds it never queues, and waiters look again in time", "[unit][wire]") {
  int live[1] = {0};
  CHECK(fair_kind().admit(0, live) == kind::admission::queue);
  live[0] = 2;
  CHECK(fair_kind().admit(0, live) == kind::admission::at_once);
  auto const& rules = fair_kind().rules();
  CHECK(rules.exclusive);
  CHECK(rules.own_channel);
  CHECK(rules.hand_off);
  CHECK_FALSE(rules.polls);
  CHECK_FALSE(rules.grant_wakes_next);
  CHECK(rules.hint_most == 10'000);
  // Whom the server finds deaf has so long to show up.
  CHECK(rules.poll_most < 700);
}

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

outcome::type rw_meaning(ask what, reply const& answer, std::int64_t target = 1) {
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
    for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
      CHECK(keys_of(rw(), from(what, mode)) == list{"orders"});
    CHECK(arguments_of(rw(), from(ask::acquire, mode)) == list{side, field, "3", "30000"});
    CHECK(arguments_of(rw(), from(ask::release, mode)) == list{channel, side, field, "3", "30000"});
    for (ask what : {ask::renew, ask::extend})
      CHECK(arguments_of(rw(), from(what, mode)) == list{side, field, "30000"});
    CHECK(arguments_of(rw(), from(ask::force_unlock, mode)) == list{channel, side});
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
  CHECK(rw_meaning(ask::acquire, integer(verdict::granted)) == granted);
  CHECK(rw_meaning(ask::acquire, integer(verdict::granted), 2) == granted);
  CHECK(rw_meaning(ask::acquire, integer(verdict::gone), 2) == gone);
  CHECK(rw_meaning(ask::acquire, integer(1'234)) == busy);
  CHECK(rw_meaning(ask::acquire, integer(-1)) == busy);
  CHECK(rw_meaning(ask::release, integer(verdict::released), 0) == released);
  CHECK(rw_meaning(ask::release, integer(verdict::released_unpublished), 0) == released);
  CHECK(rw_meaning(ask::release, integer(verdict::still_held), 2) == still_held);
  for (std::int64_t target : {0, 2}) CHECK(rw_meaning(ask::release, integer(verdict::absent), target) == absent);
  for (ask what : {ask::renew, ask::extend}) {
    CHECK(rw_meaning(what, integer(verdict::extended)) == extended);
    CHECK(rw_meaning(what, integer(verdict::absent)) == absent);
  }
  CHECK(rw_meaning(ask::force_unlock, integer(verdict::released)) == released);
  CHECK(rw_meaning(ask::force_unlock, integer(verdict::absent)) == absent);
  for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
    CHECK(rw_meaning(what, bulk("OOM")) == refused);
}

TEST_CASE("G77: read/write lock: an answer of the wrong shape is none", "[unit][wire]") {
  std::vector<reply> const wrong = {reply{}, status("OK"), array(), integer(7)};
  for (ask what : {ask::acquire, ask::release, ask::renew, ask::extend, ask::force_unlock})
    for (auto const& answer : wrong)
      if (what != ask::acquire || !answer.is_integer()) CHECK(rw_meaning(what, answer, 0) == malformed);
  CHECK(rw_meaning(ask::acquire, integer(verdict::gone), 1) == malformed);
  CHECK(rw_meaning(ask::acquire, integer(500), 2) == malformed);
  CHECK(rw_meaning(ask::hand_off, integer(verdict::granted)) == malformed);
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

}  // namespace wire_fair_read_write
