#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/permit_semaphore.hpp>

#include <set>
#include <string>
#include <vector>

namespace wire_permits {

using namespace latchkey::detail;
using namespace latchkey::test;

// The semaphore, the permit semaphore and the latch: what they ask, and what answers mean.

namespace {

using type = outcome::type;

template <class Command>
constexpr unsigned char number(Command what) {
  return static_cast<unsigned char>(what);
}

item pool_item(ask what, unsigned char command = 0) {
  item one;
  one.what = what;
  one.command = command;
  one.name = "pool";
  one.field = "id:7";
  one.lease = 500;
  one.wait = 77;
  one.amount = 3;
  one.argument = "0123456789abcdef";
  return one;
}

std::string const hex_field = permit_id_text("id:7");

type read(kind const& which, ask what, reply const& answer, bool repeated = false) {
  auto one = pool_item(what);
  one.repeated = repeated;
  return which.read(what, one, answer).what;
}

}  // namespace

TEST_CASE("semaphore: a request carries the keys and arguments that its script reads", "[unit][wire]") {
  auto const& which = semaphore_kind();
  list const keys{"pool", "latchkey_request:{pool}:id:7"};
  std::string const channel = "redisson_sc:{pool}";
  auto one = pool_item(ask::acquire);
  one.argument = {};
  CHECK(keys_of(which, one) == list{"pool", "latchkey_semaphore_claim:{pool}", keys[1]});
  CHECK(arguments_of(which, one) == list{channel, "id", "3", "1", "0", "20000"});
  one.wait = 0;
  one.repeated = true;
  CHECK(arguments_of(which, one) == list{channel, "id", "3", "0", "1", "20000"});
  one.argument = "10";
  CHECK(arguments_of(which, one) == list{channel, "id", "3/10", "0", "1", "20000"});
  CHECK(keys_of(which, pool_item(ask::release)) == keys);
  CHECK(arguments_of(which, pool_item(ask::release)) == list{channel, "20000"});
  std::set<script const*> scripts{&which.script_for(ask::acquire), &which.script_for(ask::release)};
  for (auto what :
       {semaphore_command::release, semaphore_command::add, semaphore_command::drain, semaphore_command::try_set}) {
    CHECK(keys_of(which, pool_item(ask::command, number(what))) == keys);
    list arguments{"3", "0", "20000"};
    if (what != semaphore_command::drain) arguments.insert(arguments.begin(), channel);
    CHECK(arguments_of(which, pool_item(ask::command, number(what))) == arguments);
    CHECK(which.command_script(number(what)).publishes() == (what != semaphore_command::drain));
    scripts.insert(&which.command_script(number(what)));
    CHECK(which.rules_of(number(what)).repeats);
    CHECK(which.rules_of(number(what)).persists == (what == semaphore_command::release));
  }
  CHECK(scripts.size() == 6);
  CHECK_THROWS(which.script_for(ask::renew));
  CHECK_THROWS(which.command_script(200));
}

TEST_CASE("permit semaphore: a request carries the keys and arguments that its script reads", "[unit][wire]") {
  auto const& which = permit_semaphore_kind();
  list const keys{"pool", "{pool}:timeout"};
  list const with_mark{"pool", "{pool}:timeout", "latchkey_request:{pool}:" + hex_field};
  std::string const channel = "redisson_sc:{pool}";
  for (ask what : {ask::acquire, ask::release, ask::extend}) CHECK(keys_of(which, pool_item(what)) == keys);
  CHECK(arguments_of(which, pool_item(ask::acquire)) == list{channel, "id:7", "500"});
  CHECK(arguments_of(which, pool_item(ask::extend)) == list{channel, "id:7", "500"});
  CHECK(arguments_of(which, pool_item(ask::release)) == list{channel, "id:7"});
  std::set<script const*> scripts;
  for (unsigned char what = 0; what <= number(permit_command::acquired); ++what) {
    auto one = pool_item(ask::command, what);
    one.repeated = what % 2 == 1;
    bool const changes = what != number(permit_command::update) && what < number(permit_command::available);
    CHECK(keys_of(which, one) == (changes ? with_mark : keys));
    CHECK(arguments_of(which, one) == list{channel, "0123456789abcdef", "3", "500", one.repeated ? "1" : "0", "20000"});
    scripts.insert(&which.command_script(what));
  }
  CHECK(scripts.size() == 7);
  CHECK(which.rules_of(number(permit_command::try_release)).persists);
  CHECK_FALSE(which.rules_of(number(permit_command::set)).persists);
  CHECK_THROWS(which.script_for(ask::hand_off));
  auto braced = pool_item(ask::acquire);
  braced.name = "{eu}:pool";
  CHECK(keys_of(which, braced)[1] == "{eu}:pool:timeout");
}

TEST_CASE("latch: a request carries the keys and arguments that its script reads", "[unit][wire]") {
  auto const& which = count_down_latch_kind();
  CHECK(keys_of(which, pool_item(ask::acquire)) == list{"pool"});
  CHECK(arguments_of(which, pool_item(ask::acquire)) == list{"5000"});
  list const keys{"pool", "latchkey_request:{pool}:id:7"};
  std::string const channel = "redisson_countdownlatch__channel__{pool}";
  for (auto what : {latch_command::count_down, latch_command::try_set}) {
    CHECK(keys_of(which, pool_item(ask::command, number(what))) == keys);
    CHECK(arguments_of(which, pool_item(ask::command, number(what))) == list{channel, "3", "0", "20000"});
  }
  CHECK(which.channel("{eu}:go", {}) == "redisson_countdownlatch__channel__{{eu}:go}");
  CHECK_THROWS(which.script_for(ask::release));
}

TEST_CASE("permit semaphore: an id is made of the client and the request, and read back from its text",
          "[unit][wire]") {
  auto const& which = permit_semaphore_kind();
  auto const client = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9ea";
  CHECK(permit_id_text(which.field(client, 0, 0)) == "0b1c2d3e4f504162837495a6b7c8d9ea");
  CHECK(permit_id_text(which.field(client, 0x1234, 0)) == "0b1c2d3e4f504162837495a6b7c8cbde");
  std::set<std::string> ids;
  for (std::uint64_t owner = 0; owner < 1'000; ++owner) ids.insert(which.field(client, owner, 0));
  CHECK(ids.size() == 1'000);
  for (auto const& id : ids) {
    CHECK(id.size() == 16);
    CHECK(permit_id_bytes(permit_id_text(id)) == id);
  }
  CHECK(permit_id_bytes("0B1C2D3E4F504162837495A6B7C8D9EA") == permit_id_bytes("0b1c2d3e4f504162837495a6b7c8d9ea"));
  for (auto const* wrong : {"", "0b", "0b1c2d3e4f504162837495a6b7c8d9eag", "0b1c2d3e-4f50-4162-8374-95a6b7c8"})
    CHECK_FALSE(permit_id_bytes(wrong));
}

TEST_CASE("permits: every answer to an acquire means one thing", "[unit][wire]") {
  for (kind const* which : {&semaphore_kind(), &permit_semaphore_kind(), &count_down_latch_kind()}) {
    INFO(which->rules().name);
    auto const acquire = [&](reply const& answer) {
      return which->read(ask::acquire, pool_item(ask::acquire), answer);
    };
    CHECK(acquire(integer(verdict::granted)).what == type::granted);
    CHECK_FALSE(acquire(integer(verdict::granted)).spent);
    auto const last = acquire(array({integer(verdict::granted), integer(1'000)}));
    CHECK(last.what == type::granted);
    CHECK(last.spent);
    CHECK(last.hint == 1'000);
    CHECK(acquire(integer(1'500)).what == type::busy);
    CHECK(acquire(integer(1'500)).hint == 1'500);
    CHECK(acquire(bulk("WRONGTYPE no")).what == type::refused);
    CHECK(acquire(bulk("WRONGTYPE no")).text == "WRONGTYPE no");
    CHECK(acquire(error("OOM no")).what == type::refused);
    for (auto const& wrong :
         {integer(-4), integer(-100), reply{}, status("OK"), array({}), array({integer(1), integer(1)}),
          array({integer(verdict::granted)}), array({integer(verdict::granted), bulk("1")}), integer(verdict::unseen)})
      CHECK(acquire(wrong).what == type::malformed);
  }
  CHECK(read(semaphore_kind(), ask::acquire, integer(verdict::unseen), true) == type::unseen);
  CHECK(read(permit_semaphore_kind(), ask::acquire, integer(verdict::unseen), true) == type::malformed);
  CHECK(read(count_down_latch_kind(), ask::acquire, integer(verdict::unseen), true) == type::malformed);
}

TEST_CASE("permits: every answer to a give-back means one thing", "[unit][wire]") {
  for (kind const* which : {&semaphore_kind(), &permit_semaphore_kind()}) {
    CHECK(read(*which, ask::release, integer(verdict::released)) == type::released);
    CHECK(read(*which, ask::release, integer(verdict::released_unpublished)) == type::released);
    CHECK(which->read(ask::release, pool_item(ask::release), integer(verdict::released_unpublished)).not_published);
    bool const by_mark = which == &semaphore_kind();
    CHECK(read(*which, ask::release, integer(verdict::absent)) == (by_mark ? type::unseen : type::absent));
    CHECK(read(*which, ask::release, bulk("ERR no")) == type::refused);
    for (auto const& wrong : {integer(0), integer(1), reply{}, array({}), integer(verdict::granted)})
      CHECK(read(*which, ask::release, wrong) == type::malformed);
  }
  auto const& permits = permit_semaphore_kind();
  CHECK(read(permits, ask::extend, integer(verdict::extended)) == type::extended);
  CHECK(read(permits, ask::extend, integer(verdict::absent)) == type::absent);
  CHECK(read(permits, ask::extend, bulk("ERR no")) == type::refused);
  CHECK(read(permits, ask::extend, integer(verdict::released)) == type::malformed);
}

TEST_CASE("permits: every answer to a command means one thing", "[unit][wire]") {
  for (kind const* which : {&semaphore_kind(), &permit_semaphore_kind(), &count_down_latch_kind()}) {
    auto const done = [&](reply const& answer) { return which->read(ask::command, pool_item(ask::command), answer); };
    CHECK(done(array({integer(-5), integer(1)})).what == type::done);
    CHECK(done(array({integer(-5), integer(1)})).value == -5);
    CHECK_FALSE(done(array({integer(-5), integer(1)})).not_published);
    CHECK(done(array({integer(1), integer(0)})).not_published);
    CHECK(done(bulk("WRONGTYPE no")).what == type::refused);
    for (auto const& wrong : {integer(1), reply{}, status("OK"), array({}), array({integer(1)}),
                              array({integer(1), bulk("1")}), integer(verdict::unseen)})
      CHECK(done(wrong).what == type::malformed);
    CHECK(read(*which, ask::command, integer(verdict::unseen), true) == type::unseen);
  }
}

TEST_CASE("permits: which messages wake a waiter", "[unit][wire]") {
  for (kind const* which : {&semaphore_kind(), &permit_semaphore_kind()}) {
    for (auto const* some : {"1", "3", "9223372036854775807"}) CHECK(which->wakes(some));
    for (auto const* none : {"0", "-4", "", "1x", "x", "92233720368547758070"}) CHECK_FALSE(which->wakes(none));
  }
  auto const& latch = count_down_latch_kind();
  CHECK(latch.wakes("0"));
  CHECK(latch.wakes("1"));
  CHECK_FALSE(latch.wakes("2"));
}

TEST_CASE("permits: the number behind a name is a plain command", "[unit][wire]") {
  auto const& which = semaphore_kind();
  words command;
  which.add_query(query::value, pool_item(ask::none), command);
  auto const view = command.view();
  CHECK(list(view.begin(), view.end()) == list{"GET", "pool"});
  std::int64_t value = 7;
  CHECK(which.read_query(query::value, reply{}, value));
  CHECK(value == 0);
  CHECK(which.read_query(query::value, bulk("-4"), value));
  CHECK(value == -4);
  for (auto const& wrong : {bulk("many"), bulk(""), integer(1), array({})})
    CHECK_FALSE(which.read_query(query::value, wrong, value));
}

}  // namespace wire_permits
