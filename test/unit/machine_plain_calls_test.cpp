#include <machine/outbox.hpp>
#include <machine/plain_calls.hpp>
#include <support/catch.hpp>
#include <wire/item.hpp>
#include <wire/kinds.hpp>

#include <utility>

namespace machine_plain_calls {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// Queries, force-unlocks and connects, without connections.

namespace {

constexpr instant start{std::chrono::hours(1)};

config patient() { return {.retry_attempts = 1}; }

reply integer(std::int64_t value) {
  reply made;
  made.kind = reply::type::integer;
  made.integer = value;
  return made;
}

struct room final : plain_calls_user {
  explicit room(operation::type what) {
    shared.out = &out;
    shared.now = start;
    shared.under_way = 1;
    call.what = what;
    call.which = &reentrant_kind();
    call.name = "k";
    call.where = operation::place::plain;
    if (what == operation::type::connect) all.connect_begins();
    box.add(call);
  }
  home& home_of(operation const&) override { return place; }
  void forces(operation const&) override { said += "forces "; }
  std::uint64_t shown_as(operation const& of) const override { return of.owner; }
  void correct(operation&) const override {}
  void forced(operation const&, instant sent) override { said += sent == start ? "forced " : "wrong "; }
  void forget(operation&) override { said += "forget "; }
  std::string heard() { return std::exchange(said, {}); }
  sent_call send() {
    box.remove(call);
    return {.what = sent_call::type::plain, .plain = &call, .sent = start};
  }
  bool over() const { return !out.completed.empty(); }

  context shared{patient()};
  actions out;
  home place{shared};
  outbox& box = place.requests;
  std::string said;
  operation call;
  plain_calls all{shared, *this};
};

}  // namespace

TEST_CASE("plain calls: a query ends with its answer", "[unit][machine]") {
  room r(operation::type::query);
  r.all.answered(r.send(), integer(1), r.box);
  CHECK(r.heard() == "forget ");
  CHECK(r.over());
  CHECK_FALSE(r.call.error);
  CHECK(r.call.where == operation::place::idle);
}

TEST_CASE("plain calls: a force-unlock that has removed somebody says so, as of when it was sent", "[unit][machine]") {
  room r(operation::type::force_unlock);
  reply made;
  made.kind = reply::type::array;
  made.elements.push_back(integer(static_cast<std::int64_t>(verdict::released)));
  r.all.answered(r.send(), made, r.box);
  CHECK(r.heard() == "forced forget ");
  CHECK(r.call.yes);
}

TEST_CASE("plain calls: without an answer they go on as long as attempts are left", "[unit][machine]") {
  room r(operation::type::query);
  r.send();
  r.all.unanswered(r.call);
  CHECK_FALSE(r.over());
  CHECK_FALSE(r.box.empty());
  r.send();
  r.all.not_run(r.call, {.code = errc::server_error}, "BUSY");
  CHECK(r.over());
  CHECK(r.call.text == "BUSY");
  CHECK(r.box.empty());
}

TEST_CASE("plain calls: a connect that was answered waits for the other connections, and begins anew without them",
          "[unit][machine]") {
  room r(operation::type::connect);
  CHECK(r.all.connecting());
  r.all.answered(r.send(), integer(1), r.box);
  CHECK(r.all.any_connect_answered());
  CHECK_FALSE(r.over());
  r.all.restart_connects();
  CHECK_FALSE(r.all.any_connect_answered());
  CHECK_FALSE(r.box.empty());
  for (int i = 0; i < 5; ++i) {  // it has a wait, not attempts
    r.send();
    r.all.unanswered(r.call);
  }
  CHECK_FALSE(r.over());
  r.all.answered(r.send(), integer(1), r.box);
  r.all.end_connects();
  CHECK(r.over());
  CHECK_FALSE(r.call.error);
  CHECK_FALSE(r.all.connecting());
}

TEST_CASE("plain calls: a deadline says what was heard last, and nothing is wrong with a server that has answered",
          "[unit][machine]") {
  room r(operation::type::connect);
  r.call.error = errc::auth_failed;
  r.all.expire(r.call);
  CHECK(r.call.error == errc::auth_failed);
  CHECK(r.box.empty());
  room answered(operation::type::connect);
  answered.all.answered(answered.send(), integer(1), answered.box);
  answered.all.expire(answered.call);
  CHECK_FALSE(answered.call.error);
  room waking(operation::type::connect);
  waking.all.answered(waking.send(), integer(1), waking.box);
  std::vector<operation*> found;
  waking.all.collect(found);
  CHECK(found == std::vector{&waking.call});
  waking.all.expire(waking.call);
  room silent(operation::type::query);
  silent.all.expire(silent.call);
  CHECK(may_still_be_held(silent.call.error) == false);
  CHECK(silent.call.error);
}

}  // namespace machine_plain_calls
