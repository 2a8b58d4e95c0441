#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/request_writer.hpp>
#include <machine/subscriptions.hpp>
#include <machine/watchdog.hpp>
#include <support/catch.hpp>
#include <wire/item.hpp>
#include <wire/kinds.hpp>

#include <algorithm>
#include <deque>
#include <utility>

namespace machine_request_writer {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// Requests become script calls, and answers find them, on a connection of nobody's.

namespace {

constexpr instant start{std::chrono::hours(1)};

reply array(std::size_t size, verdict each) {
  reply made;
  made.kind = reply::type::array;
  for (std::size_t i = 0; i < size; ++i) {
    auto& one = made.elements.emplace_back();
    one.kind = reply::type::integer;
    one.integer = static_cast<std::int64_t>(each);
  }
  return made;
}

reply error(std::string text) {
  reply made;
  made.kind = reply::type::error;
  made.text = std::move(text);
  return made;
}

config observed() {
  config made;
  made.on_event = [](event const&) {};
  return made;
}

struct room final : plain_listener, writer_user {
  explicit room(bool in_cluster = false) : at(shared, in_cluster), writer(shared, at, *this, timer, *this) {
    shared.out = &out;
    shared.now = start;
    to.at = lane.at = link::state::up;
  }
  ~room() { shared.timers.clear(); }

  outbox& requests_of(operation const&) const override { return box; }
  void sends(operation const&) override {}
  std::uint64_t shown_as(operation const& call) const override { return call.owner; }
  void answered(sent_call const& call, reply const&, outbox const&) override {
    said += "answered" + std::to_string(call.plain->owner);
  }
  void not_run(operation& plain, server_error const&, std::string_view) override {
    said += "not run" + std::to_string(plain.owner);
  }
  void again(operation& plain) override { box.add(plain); }
  home* redirected(redirection const& where) override {
    said += (where.once ? "ask " : "moved ") + to_string(where.to) + ' ';
    return there;
  }
  void shaken() override { said += "shaken "; }
  void misled() override { said += "misled "; }
  void unanswered(operation&) override { FAIL(); }
  void expire(operation&, error_code const&) override { FAIL(); }

  operation& ask(std::string name) {
    auto& one = names.emplace_back(shared, at, reentrant_kind(), std::move(name));
    auto& call = calls.emplace_back();
    call.which = &reentrant_kind();
    call.owner = 7;
    call.name = one.name();
    call.once = true;
    call.lease = 30s;
    call.started = shared.now;
    call.deadline = start + 10s;
    ++shared.under_way;
    one.start(call);
    return call;
  }
  void send() { writer.send(box, to); }
  void answer(reply given) {
    REQUIRE_FALSE(to.unanswered.empty());
    sent_call call = std::move(to.unanswered.front());
    to.unanswered.pop_front();
    writer.answered(to, call, given);
  }
  std::string bytes() { return std::exchange(to.out, {}); }

  context shared{observed()};
  actions out;
  std::deque<operation> calls;
  std::deque<name_machine> names;
  home at, elsewhere{shared};
  home* there = &elsewhere;
  outbox& box = at.requests;
  timer_node timer;
  detail::link to{role::shared}, lane{role::direct};
  std::string said;
  request_writer writer;
};

bool has(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("request writer: what was asked in one turn leaves in as few calls as there are full groups",
          "[unit][machine]") {
  room r;
  for (int i = 0; i < 60; ++i) r.ask("k" + std::to_string(i));
  r.send();
  CHECK(r.box.empty());
  REQUIRE(r.to.unanswered.size() == 2);
  CHECK(r.to.unanswered[0].owners.size() == 48);
  CHECK(r.to.unanswered[1].owners.size() == 12);
  r.answer(array(48, verdict::granted));
  CHECK(r.out.completed.size() == 48);
  r.answer(array(11, verdict::granted));  // one is missing: none of it is believed
  CHECK(r.out.completed.size() == 60);
  CHECK(r.calls[47].yes);
  CHECK_FALSE(r.calls[48].yes);
}

TEST_CASE("request writer: only what it is given leaves, and no more than a connection carries", "[unit][machine]") {
  room r;
  r.ask("k");
  outbox others(r.shared);
  r.writer.send(others, r.to);
  CHECK(r.to.out.empty());
  r.to.unanswered.resize(256);
  r.send();
  CHECK(r.to.out.empty());
  r.to.unanswered.pop_front();
  r.send();
  CHECK(r.to.unanswered.size() == 256);
}

TEST_CASE("request writer: a script that the server has not goes whole, once", "[unit][machine]") {
  room r;
  operation const& call = r.ask("k");
  r.send();
  CHECK(has(r.bytes(), "EVALSHA"));
  r.answer(error("NOSCRIPT No matching script."));
  CHECK_FALSE(r.box.empty());
  r.send();
  CHECK_FALSE(has(r.bytes(), "EVALSHA"));
  r.answer(array(1, verdict::granted));
  CHECK(call.yes);
  r.ask("l");
  r.send();
  CHECK(has(r.bytes(), "EVALSHA"));
  r.writer.miss(reentrant_kind().script_for(ask::acquire));
  r.ask("m");
  r.send();
  CHECK_FALSE(has(r.bytes(), "EVALSHA"));
}

TEST_CASE("request writer: listeners are counted where they listen", "[unit][machine]") {
  for (bool const sharded : {false, true}) {
    room r(true);
    r.at.sharded_channels = sharded;
    operation plain;
    plain.what = operation::type::query;
    plain.question = query::listeners;
    plain.which = &reentrant_kind();
    plain.name = "k";
    r.box.add(plain);
    r.send();
    auto const bytes = r.bytes();
    CHECK(has(bytes, "\nPUBSUB\r"));
    CHECK(has(bytes, sharded ? "\nSHARDNUMSUB\r" : "\nNUMSUB\r"));
  }
}

TEST_CASE("request writer: while the server runs nothing requests wait, and one event says so", "[unit][machine]") {
  room r;
  r.ask("k");
  operation plain;
  plain.what = operation::type::query;
  plain.owner = 9;
  plain.which = &reentrant_kind();
  plain.name = "k";
  r.box.add(plain);
  r.send();
  CHECK(r.to.unanswered.size() == 2);
  r.answer(error("LOADING Redis is loading the dataset in memory"));
  r.answer(error("LOADING Redis is loading the dataset in memory"));
  CHECK(r.said == "not run9");
  CHECK(r.writer.paused());
  CHECK_FALSE(r.writer.turned_away());
  CHECK(r.timer.at > start);
  CHECK(std::count_if(r.out.notes.begin(), r.out.notes.end(),
                      [](note const& one) { return one.type == event_type::warning; }) == 1);
  r.ask("l");
  r.send();
  CHECK(r.to.unanswered.empty());
  r.shared.now += 1h;
  CHECK_FALSE(r.writer.paused());
  r.send();
  CHECK_FALSE(r.to.unanswered.empty());
}

TEST_CASE("request writer: a server that has become a replica turns requests away", "[unit][machine]") {
  room r;
  r.ask("k");
  r.send();
  r.answer(error("READONLY You can't write against a read only replica."));
  CHECK(r.writer.turned_away());
  CHECK_FALSE(r.writer.turned_away());
}

TEST_CASE("request writer: what goes by the direct lane is written for its borrower", "[unit][machine]") {
  room r;
  r.shared.lane_offered = true;
  operation& call = r.ask("k");
  REQUIRE(r.shared.lane_records == std::vector{call.of_owner});
  r.writer.lend(r.lane, r.shared.lane_records);
  CHECK(r.lane.lent);
  CHECK(r.lane.out.empty());
  CHECK(has(r.writer.lane_bytes(), "EVALSHA"));
  CHECK(r.writer.lane_answer(r.lane, error("NOSCRIPT No matching script.")));
  CHECK(r.lane.lent);
  CHECK_FALSE(has(r.writer.lane_bytes(), "EVALSHA"));
  CHECK_FALSE(r.writer.lane_answer(r.lane, array(1, verdict::granted)));
  CHECK_FALSE(r.lane.lent);
  CHECK(r.lane.of_use);
  CHECK(call.yes);
}

TEST_CASE("request writer: a script that publishes is told how, behind all items", "[unit][machine]") {
  for (bool const sharded : {false, true}) {
    room r;
    operation call;
    call.what = operation::type::force_unlock;
    call.which = &reentrant_kind();
    call.name = "k";
    if (sharded) r.at.sharded_channels = true;
    r.writer.lend(r.lane, call);
    CHECK(r.writer.lane_bytes().ends_with(sharded ? "\r\n$8\r\nspublish\r\n" : "\r\n$7\r\npublish\r\n"));
    r.ask("l");
    r.send();
    CHECK_FALSE(has(r.bytes(), "publish"));  // to acquire it tells nobody
  }
}

}  // namespace machine_request_writer
