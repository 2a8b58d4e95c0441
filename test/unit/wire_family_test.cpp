#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace latchkey::detail;
using namespace latchkey::test;
using type = outcome::type;

namespace {

constexpr ask asks[] = {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock};

reply token(std::string text) { return array({integer(verdict::granted), bulk(std::move(text))}); }

std::int64_t answered(kind const& which, query what, reply const& answer) {
  std::int64_t value = -99;
  return which.read_query(what, answer, value) ? value : -99;
}

std::vector<kind const*> all_kinds() {
  return {&reentrant_kind(), &non_reentrant_kind(), &spin_kind(), &fenced_kind(), &fenced_kind(true), &plain_kind()};
}

}  // namespace

TEST_CASE("non-reentrant lock: its requests are those of the reentrant lock") {
  for (ask what : asks) {
    CHECK(&non_reentrant_kind().script_for(what) == &reentrant_kind().script_for(what));
    CHECK(keys_of(non_reentrant_kind(), what) == keys_of(reentrant_kind(), what));
    CHECK(arguments_of(non_reentrant_kind(), what) == arguments_of(reentrant_kind(), what));
  }
}

TEST_CASE("non-reentrant lock, plain lock: an owner who holds it has it already") {
  for (kind const* which : {&non_reentrant_kind(), &plain_kind()}) {
    int live[1] = {0};
    CHECK(which->admit(0, live) == kind::admission::queue);
    live[0] = 1;
    CHECK(which->admit(0, live) == kind::admission::already_held);
  }
  for (kind const* which : {&spin_kind(), &fenced_kind()}) {
    int live[1] = {0};
    CHECK(which->admit(0, live) == kind::admission::queue);
    live[0] = 1;
    CHECK(which->admit(0, live) == kind::admission::at_once);
  }
}

TEST_CASE("spin lock: no request has a channel, and nothing that is heard wakes anybody") {
  for (ask what : asks) {
    CHECK(keys_of(spin_kind(), what) == list{"orders"});
    auto arguments = arguments_of(reentrant_kind(), what);
    if (reentrant_kind().script_for(what).publishes()) arguments.erase(arguments.begin());
    CHECK(arguments_of(spin_kind(), what) == arguments);
    CHECK_FALSE(spin_kind().script_for(what).publishes());
  }
  for (ask what : {ask::release, ask::hand_off, ask::force_unlock})
    CHECK(spin_kind().script_for(what).text().find("(KEYS[k], nil") != std::string_view::npos);
  CHECK(spin_kind().channel("orders", {}).empty());
  CHECK_FALSE(spin_kind().wakes("0"));
  CHECK_FALSE(spin_kind().rules().listens);
  CHECK(spin_kind().rules().polls);
  CHECK(spin_kind().rules().poll_first == 1);
  CHECK(spin_kind().rules().poll_most == 128);
}

TEST_CASE("fenced lock: a request that may grant has the counter and says whether it is seeded") {
  std::string const counter = "redisson_lock_token:{orders}", channel = "redisson_lock__channel:{orders}";
  CHECK(keys_of(fenced_kind(), ask::acquire) == list{"orders", counter});
  CHECK(arguments_of(fenced_kind(), ask::acquire) == list{"id:1", "3", "30000", "0"});
  CHECK(arguments_of(fenced_kind(true), ask::acquire) == list{"id:1", "3", "30000", "1"});
  CHECK(keys_of(fenced_kind(), ask::hand_off) == list{"orders", counter});
  CHECK(arguments_of(fenced_kind(), ask::hand_off) == list{channel, "id:1", "id:2", "30000", "0"});
  CHECK(arguments_of(fenced_kind(true), ask::hand_off) == list{channel, "id:1", "id:2", "30000", "1"});
  for (ask what : {ask::release, ask::renew, ask::extend, ask::force_unlock}) {
    CHECK(&fenced_kind().script_for(what) == &reentrant_kind().script_for(what));
    CHECK(keys_of(fenced_kind(), what) == keys_of(reentrant_kind(), what));
    CHECK(arguments_of(fenced_kind(), what) == arguments_of(reentrant_kind(), what));
  }
  item braced = everything(ask::acquire);
  braced.name = "{eu}:orders";
  words command;
  fenced_kind().add_keys(braced, command);
  CHECK(listed(command) == list{"{eu}:orders", "redisson_lock_token:{eu}:orders"});
  CHECK(question_of(fenced_kind(), query::token) == list{"GET", counter});
}

TEST_CASE("fenced lock: a grant has its token, exactly") {
  for (std::string const text : {"1", "42", "9007199254740993", "9223372036854775807"}) {
    auto const got = meaning(fenced_kind(), ask::acquire, token(text));
    CHECK(got.what == type::granted);
    CHECK(got.token == std::stoull(text));
    CHECK(meaning(fenced_kind(), ask::acquire, token(text), 2).token == std::stoull(text));
    auto const passed = meaning(fenced_kind(), ask::hand_off, array({integer(verdict::released), token(text)}));
    CHECK(passed.what == type::released);
    CHECK(passed.grant == type::granted);
    CHECK(passed.token == std::stoull(text));
  }
}

TEST_CASE("fenced lock: G77: an answer without a token is no grant") {
  for (auto const& odd : {integer(verdict::granted), array({}), array({integer(verdict::granted)}), token(""),
                          token("0"), token("-1"), token("x"), token("1x"), token("+1"), token("9223372036854775808"),
                          array({integer(verdict::granted), integer(5)}), array({integer(verdict::granted), reply{}}),
                          array({integer(-1), bulk("5")}), array({bulk("-3"), bulk("5")}),
                          array({integer(verdict::granted), bulk("5"), bulk("6")}), reply{}}) {
    INFO(show(odd));
    for (std::int64_t target : {1, 2}) {
      auto const got = meaning(fenced_kind(), ask::acquire, odd, target);
      CHECK(got.what == type::malformed);
      CHECK(got.token == 0);
    }
    auto const passed = meaning(fenced_kind(), ask::hand_off, array({integer(verdict::released), odd}));
    CHECK(passed.what == type::malformed);
    CHECK(passed.grant == type::malformed);
  }
  CHECK(meaning(fenced_kind(), ask::acquire, integer(500)).what == type::busy);
  CHECK(meaning(fenced_kind(), ask::acquire, integer(verdict::gone), 2).what == type::gone);
  CHECK(meaning(fenced_kind(), ask::acquire, bulk("ERR value is not an integer")).what == type::refused);
  auto const freed = meaning(fenced_kind(), ask::hand_off, array({integer(verdict::released), bulk("ERR overflow")}));
  CHECK(freed.what == type::released);
  CHECK(freed.grant == type::refused);
}

TEST_CASE("fenced lock: the latest token, or none, or an answer that is none") {
  CHECK(answered(fenced_kind(), query::token, reply{}) == 0);
  CHECK(answered(fenced_kind(), query::token, bulk("17")) == 17);
  CHECK(answered(fenced_kind(), query::token, bulk("9223372036854775807")) == 9'223'372'036'854'775'807);
  for (auto const& odd : {bulk(""), bulk("x"), bulk("-1"), bulk("9223372036854775808"), integer(3), array({})})
    CHECK(answered(fenced_kind(), query::token, odd) == -99);
  CHECK(answered(fenced_kind(), query::hold_count, bulk("3")) == 3);
}

TEST_CASE("only the fenced lock says that it has tokens") {
  for (kind const* which : all_kinds())
    CHECK(which->rules().tokens == (which == &fenced_kind() || which == &fenced_kind(true)));
  words command;
  CHECK_THROWS_AS(reentrant_kind().add_query(query::token, everything(ask::none), command), std::logic_error);
}

TEST_CASE("plain lock: keys, arguments and questions") {
  std::string const channel = "latchkey_plain__channel:{orders}";
  for (ask what : asks) CHECK(keys_of(plain_kind(), what) == list{"orders"});
  for (ask what : {ask::release, ask::hand_off, ask::force_unlock})
    CHECK(arguments_of(plain_kind(), what).at(0) == channel);
  CHECK(arguments_of(plain_kind(), ask::acquire) == list{"id:1", "3", "30000"});
  CHECK(arguments_of(plain_kind(), ask::renew) == list{"id:1", "30000"});
  CHECK(plain_kind().channel("{eu}:orders", {}) == "latchkey_plain__channel:{eu}:orders");
  CHECK(plain_kind().field("id", 7, 0) == "id:7");
  for (ask what : asks) {
    CHECK(&plain_kind().script_for(what) != &reentrant_kind().script_for(what));
    CHECK(plain_kind().script_for(what).text().find("'h") == std::string_view::npos);  // no command of a hash
  }
  CHECK(question_of(plain_kind(), query::is_locked) == list{"EXISTS", "orders"});
  CHECK(question_of(plain_kind(), query::time_to_live) == list{"PTTL", "orders"});
  for (query what : {query::is_held_by, query::hold_count}) {
    CHECK(question_of(plain_kind(), what) ==
          list{"EVAL", std::string(plain_is_held_by().text()), "1", "orders", "id:1"});
    CHECK(answered(plain_kind(), what, integer(0)) == 0);
    CHECK(answered(plain_kind(), what, integer(1)) == 1);
    for (auto const& odd : {integer(2), bulk("1"), reply{}}) CHECK(answered(plain_kind(), what, odd) == -99);
  }
  CHECK(plain_kind().rules().listens);
  CHECK(plain_kind().rules().polls);
  CHECK(plain_kind().wakes("0"));
  CHECK_FALSE(plain_kind().wakes("junk"));
}

TEST_CASE("family: every kind has a name of its own, is exclusive and passes the lock on") {
  std::set<std::string_view> names;
  int themselves = 0;
  for (kind const* which : all_kinds()) {
    names.insert(which->rules().name);
    for (kind const* other : all_kinds()) themselves += which->same_as(*other);
    CHECK(which->rules().exclusive);
    CHECK(which->rules().hand_off);
    CHECK_FALSE(which->rules().own_channel);
  }
  CHECK(names.size() == all_kinds().size() - 1);  // the two fenced ones are one kind to a user
  CHECK(themselves == static_cast<int>(all_kinds().size()));
}

TEST_CASE("family: a request that none of them has is refused") {
  for (kind const* which : all_kinds())
    for (ask what : {ask::none, ask::leave}) CHECK_THROWS_AS(which->script_for(what), std::logic_error);
}
