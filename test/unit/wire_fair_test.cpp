#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/fair_scripts.hpp>
#include <wire/kinds.hpp>
#include <wire/reentrant_scripts.hpp>

#include <stdexcept>
#include <string>

using namespace latchkey::detail;
using namespace latchkey::test;

namespace {

outcome meaning(ask what, reply const& said, std::int64_t target = 1) {
  return latchkey::test::meaning(fair_kind(), what, said, target);
}

list const all_keys{"orders", "redisson_lock_queue:{orders}", "redisson_lock_timeout:{orders}",
                    "redisson_lock__channel:{orders}"};

}  // namespace

TEST_CASE("fair lock: a request carries the keys and arguments that its script reads", "[unit][wire]") {
  struct row {
    ask what;
    list keys;
    list arguments;
  };
  auto const [what, keys, arguments] = GENERATE_COPY(values<row>({
      {ask::acquire, all_keys, {"id:1", "3", "30000", "300000", "0"}},
      {ask::release, all_keys, {"id:1", "3", "30000"}},
      {ask::hand_off, all_keys, {"id:1", "id:2", "30000", "300000", "0"}},
      {ask::renew, {"orders"}, {"id:1", "30000"}},
      {ask::extend, {"orders"}, {"id:1", "30000"}},
      {ask::force_unlock, all_keys, {}},
      {ask::leave, all_keys, {"id:1", "300000"}},
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
