// Cases 80 and 81 for every kind: a call that waits is cancelled, or its client goes away, after every handler.
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <sweeps/sweep_config.hpp>

#include <boost/asio/error.hpp>

using namespace latchkey;
using namespace latchkey::test;

namespace {

enum class fate { cancelled, destroyed };

// True: the call had ended before anything befell it.
bool end_after(int steps, waiting_call const& call, fate what, clients const& theirs) {
  asio::io_context io;
  event_log log;
  clients own;
  own.emplace_back(io, common_server().uri(), steady_config(log));
  auto const name = new_name();
  auto release = call.occupy(theirs, name);
  int completions = 0;
  error_code result;
  asio::cancellation_signal signal;
  call.begin(own, name, signal.slot(), [&](error_code error) {
    ++completions;
    result = error;
  });
  for (int i = 0; i < steps && completions == 0; ++i) {
    io.restart();
    bool const idle = io.run_one_for(20ms) == 0;
    if (release && (idle || log.count(event_type::waiting) > 0)) std::exchange(release, nullptr)();
  }
  bool const before = completions == 1;
  if (what == fate::cancelled)
    signal.emit(asio::cancellation_type::total);
  else
    own.clear();
  CHECK(run_until(io, [&] { return completions == 1; }));
  if (!before) CHECK((!result || result == asio::error::operation_aborted || result == errc::closed));
  if (release) release();
  if (!result && call.give_back) call.give_back(theirs, name);
  if (call.is_free) CHECK(run_until(io, [&] { return call.is_free(theirs, name); }));
  if (!own.empty()) {
    auto const rest = [&] {
      auto const seen = own[0].snapshot();
      return seen.held + seen.waiting + seen.in_doubt == 0;
    };
    CHECK(run_until(io, rest));
  }
  CHECK(completions == 1);
  // To the end of what it has to say to the server.
  own.clear();
  io.restart();
  io.run_for(patience);
  return before;
}

void end_everywhere(fate what) {
  clients theirs;
  theirs.emplace_back(common_server().uri(), steady_config());
  for (auto const& call : every_waiting_call()) {
    int steps = 0;
    for (bool before = false; !before; ++steps) {
      INFO(call.kind << ", after " << steps << " handlers");
      REQUIRE(steps < 300);
      before = end_after(steps, call, what, theirs);
    }
    INFO(call.kind);
    CHECK(steps > 4);
  }
}

}  // namespace

TEST_CASE("case 81: a call of any kind cancelled after any number of steps", "[server][case-81]") {
  end_everywhere(fate::cancelled);
}

TEST_CASE("case 80: a client that goes away after any number of steps of a call of any kind", "[server][case-80]") {
  end_everywhere(fate::destroyed);
}
