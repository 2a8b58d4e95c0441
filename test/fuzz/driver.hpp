#pragma once

#include <fuzz/any_server.hpp>
#include <fuzz/input.hpp>
#include <machine/client_machine.hpp>
#include <machine/hold_link.hpp>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::fuzz {

// One call of a user, and what became of it.
struct call : detail::operation {
  struct shown_hold : detail::hold_link {
    int losses = 0;
  };
  std::string key;
  shown_hold shown;
  int completions = 0;
  bool ended = false;  // its hold was released or dropped
};

// A whole client in virtual time, with an engine, callers and a server of which the bytes decide what they do. It may
// be lied to, so it cannot be asked whether it holds what it believes: only that it keeps its promises to callers.
// Bodies: machine_fuzz.cpp (events), machine_fuzz.cpp (callers).
class driver {
 public:
  explicit driver(input from);
  void play();

 private:
  // machine_fuzz.cpp
  void event(unsigned char what);
  void check();
  void perform();
  void turn();
  void pass(detail::nanoseconds length);
  peer* any_peer();
  void open(peer& one);
  void answer(peer& one, bool honest);
  void say(peer& to, std::string const& bytes);
  void end(std::uint32_t serial, bool failed);
  void publish();
  void close();
  void finish();

  // machine_fuzz.cpp
  call& made(detail::operation::type what);
  call& about(detail::operation::type what, call const& held);
  void start(call& one, bool may_borrow);
  void acquire();
  void release(bool latest);
  void extend();
  void drop();
  void plain();
  void command_of_kind();
  void cancel();
  void expire();
  call* any_call();
  call* any_hold();

  input in_;
  std::array<known_kind, 2> kinds_;  // few, so that calls meet
  detail::instant now_{std::chrono::hours(1)};
  detail::client_machine machine_;
  detail::actions out_;
  bool turn_due_ = false;
  std::map<std::uint32_t, peer> peers_;
  std::uint32_t lent_ = 0;  // serial of the lane that a caller has borrowed
  std::vector<std::unique_ptr<call>> calls_;
};

}  // namespace latchkey::fuzz
