#include <machine/orphans.hpp>
#include <support/catch.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// What connections leave behind, without the session: docs/safety.md, section 5.

namespace {

constexpr instant start{std::chrono::hours(1)};

config observed() {
  config settings;
  settings.on_event = [](event const&) {};
  settings.retry_attempts = 2;
  settings.retry_delay = 1s;
  return settings;
}

struct room final : orphans_user, plain_listener {
  room() {
    shared.out = &out;
    shared.now = start;
  }
  void kill(orphan const& gone) override { said += "kill " + gone.id + " "; }
  void answered(sent_call const&, reply const&) override { FAIL(); }
  void not_run(operation&, server_error const&, std::string_view) override { FAIL(); }
  void unanswered(operation& call) override { said += "unanswered " + std::to_string(call.owner) + " "; }
  void expire(operation& call, error_code const& why) override {
    CHECK(why == errc::connection_lost);
    said += "ends " + std::to_string(call.owner) + " ";
    all.forget(call);
  }
  std::string heard() { return std::exchange(said, {}); }

  // With a force-unlock of this owner, if not zero.
  void lose(std::uint32_t serial, std::uint64_t owner = 0, std::string address = "1.2.3.4:5") {
    remains left{std::to_string(serial * 10), std::move(address), run_id, serial, {}};
    auto& sent = left.calls.emplace_back();
    sent.what = sent_call::type::script;
    if (owner != 0) {
      sent = {.what = sent_call::type::plain, .asked = ask::force_unlock, .plain = &plain(owner)};
      sent.plain->what = operation::type::force_unlock;
    }
    all.give_up(std::move(left), errc::connection_lost, {});
  }
  operation& plain(std::uint64_t owner) {
    calls.emplace_back().owner = owner;
    return calls.back();
  }
  void answer(std::uint32_t serial, std::int64_t number) {
    reply made;
    made.kind = reply::type::integer;
    made.integer = number;
    all.answered(serial, made);
  }
  void refuse(std::uint32_t serial, std::string text) {
    reply made;
    made.kind = reply::type::error;
    made.text = std::move(text);
    all.answered(serial, made);
  }

  context shared{observed()};
  actions out;
  std::string said;
  std::deque<operation> calls;
  std::string run_id;
  timer_node timer;
  orphans all{shared, *this, *this, timer};
};

}  // namespace

TEST_CASE("orphans: each is killed once, and its force-unlocks end with the answer") {
  room r;
  r.lose(1, 7);
  CHECK(r.out.turn);
  r.lose(2);
  r.all.send();
  CHECK(r.heard() == "kill 10 kill 20 ");
  r.all.send();
  CHECK(r.heard().empty());
  r.answer(2, 0);  // it was gone already
  CHECK(r.heard().empty());
  CHECK_FALSE(r.all.empty());
  CHECK(r.all.forced().size() == 1);
  r.answer(1, 1);
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
  CHECK(r.shared.counters.kills == 2);
  r.answer(1, 1);  // nobody asked
  CHECK(r.heard().empty());
}

TEST_CASE("orphans: a KILL whose connection was lost is asked again") {
  room r;
  r.lose(1, 7);
  r.all.send();
  r.all.disconnected();
  r.all.connected("99", {});
  CHECK(r.heard() == "kill 10 ");
  r.all.send();
  CHECK(r.heard() == "kill 10 ");
}

TEST_CASE("orphans: what is no number is no answer, costs a pause and an attempt") {
  room r;
  r.lose(1, 7);
  r.all.send();
  CHECK(r.heard() == "kill 10 ");
  for (int attempt = 0; attempt < 2; ++attempt) {
    r.refuse(1, "BUSY Redis is busy running a script");
    r.all.send();
    CHECK(r.heard().empty());  // not before the pause is over
    r.shared.now += 1s;
    r.all.send();
    CHECK(r.heard() == "kill 10 ");
  }
  r.refuse(1, "BUSY Redis is busy running a script");
  CHECK(r.heard() == "ends 7 ");
  CHECK_FALSE(r.all.empty());
  r.shared.timers.drop(r.timer);
}

TEST_CASE("orphans: where the server refuses KILL nothing is waited for, and one event says so") {
  room r;
  r.lose(1, 7);
  r.all.send();
  r.refuse(1, "NOPERM this user has no permissions to run the 'client|kill' command");
  CHECK_FALSE(r.shared.counters.fenced);
  CHECK(r.heard() == "kill 10 ");
  r.all.send();
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
  r.lose(2, 8);
  CHECK(r.heard() == "ends 8 ");
  r.all.refuse("NOPERM once more");
  CHECK(std::count_if(r.out.notes.begin(), r.out.notes.end(),
                      [](note const& one) { return one.type == event_type::kill_refused; }) == 1);
  r.all.allow();
  CHECK(r.shared.counters.fenced);
  r.lose(3, 9);
  r.all.send();
  CHECK(r.heard() == "kill 30 ");
}

TEST_CASE("orphans: another process of the server has outlived them") {
  room r;
  r.run_id = "a";
  r.lose(1, 7);
  r.all.connected("3", "b");
  CHECK(r.heard() == "ends 7 ");
  CHECK(r.all.empty());
}

TEST_CASE("orphans: on a Unix socket numbers that start anew tell of another process, elsewhere they do not") {
  room r;
  r.lose(5, 7, "/tmp/redis.sock:0");
  r.lose(6, 8);
  r.all.connected("51", {});
  CHECK(r.heard().empty());
  r.all.connected("50", {});
  CHECK(r.heard() == "ends 7 ");
  CHECK_FALSE(r.all.empty());
}

TEST_CASE("orphans: only what may still run makes one; what asked for nothing is told, and that is all") {
  room r;
  sent_call hello{.what = sent_call::type::hello};
  sent_call asked{.what = sent_call::type::plain, .plain = &r.plain(7)};
  sent_call left_alone{.what = sent_call::type::plain};
  remains left{"10", "1.2.3.4:5", {}, 1, {}};
  for (auto* one : {&hello, &asked, &left_alone}) left.calls.push_back(*one);
  left.calls[1].plain->what = operation::type::query;
  r.all.give_up(std::move(left), errc::connection_lost, {});
  CHECK(r.heard() == "unanswered 7 ");
  CHECK(r.all.empty());
  r.all.give_up({"20", "1.2.3.4:6", {}, 2, {{.what = sent_call::type::renewals}}}, errc::connection_lost, {});
  r.all.send();
  CHECK(r.heard() == "kill 20 ");
}
