#include <engine/call.hpp>
#include <engine/client_threads.hpp>
#include <engine/steps.hpp>
#include <engine/transport.hpp>
#include <support/catch.hpp>
#include <support/start_one.hpp>
#include <wire/kinds.hpp>

#include <boost/asio/io_context.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace latchkey;
using namespace latchkey::detail;

// The steps of a client, and who tells its events, without a transport, a server or a core.

namespace {

struct engine_room final : steps_user {
  void begin_io() override { said += "begin "; }
  void tell_loss(std::shared_ptr<loss_listener> const&, error_code const&) override { said += "loss "; }
  void finished() noexcept override { said += "finished "; }
  std::string heard() { return std::exchange(said, {}); }

  config observed() {
    config made;
    made.on_event = [this](event const& what) { said += what.text.empty() ? "event " : std::string(what.text) + ' '; };
    return made;
  }

  std::string said;
  config settings = observed();
  asio::io_context io;
  fork_guard forks;
  client_threads threads{io.get_executor(), forks};
  event_teller events{settings, threads, [this] { said += "posted "; }};
  client_end end;
  steps all{settings, {"id", {}, {}}, end, events, *this};
};

struct noted_call final : call {
  explicit noted_call(engine_room& its) : room(its) { what = type::query; }
  void complete() noexcept override {
    room.all.look([](client_machine&) { return 0; });  // the mutex is free
    room.said += error == errc::closed ? "closed " : "completed ";
  }
  engine_room& room;
};

void start(engine_room& r, noted_call& one) {
  one.which = &reentrant_kind();
  one.name = "k";
  r.all.take([&](client_machine& machine, instant now, actions& out) {
    machine.prepare(one, out);
    test::start_one(machine, one, false, now, out);
  });
}

}  // namespace

TEST_CASE("steps: the first that needs a server asks for sockets, once; after a failure the next does") {
  engine_room r;
  r.all.take([](client_machine&, instant, actions&) {});
  CHECK(r.heard().empty());
  noted_call one(r), other(r);
  start(r, one);
  CHECK(r.heard() == "begin ");
  start(r, other);
  CHECK(r.heard().empty());
  CHECK(r.all.io_failed());
  r.all.take([](client_machine& machine, instant now, actions& out) { machine.unreachable("no way", now, out); });
  CHECK(r.heard() == "no way completed completed ");
  noted_call third(r);
  start(r, third);
  CHECK(r.heard() == "begin ");
  r.all.take([](client_machine& machine, instant now, actions& out) { machine.close_now(now, out); });
  CHECK(r.heard() == "closed ");
}

TEST_CASE("steps: what a step does outside comes before what it tells") {
  engine_room r;
  noted_call one(r);
  r.all.take(
      [&](client_machine& machine, instant now, actions& out) {
        one.which = &reentrant_kind();
        one.name = "k";
        machine.prepare(one, out);
        test::start_one(machine, one, false, now, out);
        machine.close_now(now, out);
      },
      [&] { r.said += "then "; });
  CHECK(r.heard() == "then begin closed ");
}

TEST_CASE("steps: the caller's look at the clock will do, and time does not run backwards") {
  engine_room r;
  auto const time_of_step = [&](instant at) {
    instant seen{};
    r.all.take(
        r.all.prepare(), at, [&](client_machine&, instant now, actions&) { seen = now; }, [] {});
    return seen;
  };
  instant const began = boot_now();
  CHECK(time_of_step(began) == began);
  CHECK(time_of_step(began - std::chrono::seconds(1)) == began);
  instant const looked = time_of_step({});
  CHECK(looked >= began);
  CHECK(looked <= boot_now());
  CHECK(time_of_step(began) == looked);
}

TEST_CASE("steps: the end is told once, when it was begun and nothing is left to be said") {
  engine_room r;
  auto const close = [&] {
    r.all.take([](client_machine& machine, instant now, actions& out) { machine.close(1, now, out); });
  };
  close();
  CHECK(r.heard() == "begin ");  // where sockets are on their way it is told by them
  CHECK(r.all.io_failed());
  r.all.take([&](client_machine&, instant, actions&) { r.end.begin(); });
  CHECK(r.heard() == "finished ");
  close();
  CHECK(r.heard().empty());
  CHECK_FALSE(r.all.io_made(nullptr));
  CHECK_FALSE(r.all.io_failed());
}

TEST_CASE("event teller: a listener who throws is told of it once, himself") {
  std::string said;
  config settings;
  settings.on_event = [&](event const& what) {
    said += what.type == event_type::callback_failed ? "failed " : "event ";
    throw std::runtime_error("no");
  };
  asio::io_context io;
  fork_guard const forks;
  client_threads const threads(io.get_executor(), forks);
  event_teller events(settings, threads, [] {});
  for (int i = 0; i < 2; ++i) events.report({});
  CHECK(said == "event failed event ");
}

TEST_CASE("event teller: with threads of the client's own somebody is asked to deliver, and the order is kept") {
  std::string said;
  config settings;
  settings.on_event = [&](event const& what) { said += what.text; };
  fork_guard const forks;
  client_threads threads(std::nullopt, forks);
  int posted = 0;
  event_teller events(settings, threads, [&] { ++posted; });
  std::vector<note> notes(2);
  notes[0].text = "a";
  notes[1].text = "b";
  CHECK(events.push(notes));
  CHECK(notes.empty());
  note third;
  third.text = "c";
  events.report(third);
  CHECK(posted == 0);  // the first was told already that somebody is to
  events.deliver_soon();
  CHECK(posted == 1);
  CHECK(said.empty());
  events.deliver();
  CHECK(said == "abc");
  threads.start([](std::exception_ptr const&) {});
  threads.finish();
}
