#pragma once

#include <codec/reply.hpp>
#include <machine/client_machine.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

using namespace latchkey::detail;

inline constexpr std::string_view granted_bytes = "*1\r\n:-3\r\n";
inline constexpr std::string_view released_bytes = "*1\r\n:-5\r\n";

inline reply parsed(std::string_view bytes) {
  reply_reader reader;
  reader.feed(bytes);
  reply answer;
  if (reader.next(answer) != reply_reader::result::reply) throw std::runtime_error("no reply");
  return answer;
}

// A client whose connections are up, with a server that always agrees.
class world {
 public:
  world() : machine_({}, {.client_id = std::string(36, 'a'), .username = {}, .password = {}}) {
    pair(false);  // opens the shared connection
    pair(true);   // asks for the direct lane
    turn();
    turn();
  }

  // One acquire and one release. False: the direct lane was to be used and was not.
  bool pair(bool direct) {
    bool as_asked = true;
    for (auto what : {operation::type::acquire, operation::type::release}) {
      std::uint32_t const lane = start(what, direct);
      if (lane != 0) machine_.lane_answer(lane, what == operation::type::acquire ? granted_ : released_, now_, out_);
      for (int turns = 0; out_.completed.empty(); ++turns) turn(turns);
      if (call_.error) throw std::runtime_error(call_.error.message());
      as_asked = as_asked && (lane != 0) == direct;
    }
    return as_asked;
  }

 private:
  std::uint32_t start(operation::type what, bool may_borrow) {
    call_ = {};
    call_.what = what;
    call_.which = &reentrant_kind();
    call_.name = "bench";
    call_.owner = 1;
    call_.self_timed = true;
    out_.clear();
    now_ += std::chrono::microseconds(50);
    return machine_.start(call_, may_borrow, now_, out_);
  }

  void turn(int so_far = 0) {
    if (so_far > 20) throw std::runtime_error("the call does not end");
    io_.clear();
    machine_.turn(now_, io_, out_);
    auto const open = io_.open;
    auto const write = io_.write;
    for (auto const& one : open) machine_.opened(one.serial, now_, out_);
    for (auto const& one : write) answer(one.serial, one.bytes);
  }

  void answer(std::uint32_t serial, std::string_view bytes) {
    reader_.feed(bytes);
    for (reply command; reader_.next(command) == reply_reader::result::reply;) {
      auto const& words = command.elements;
      std::string line = "id=" + (words.size() > 3 ? words[3].text : std::to_string(serial)) + " addr=here:1";
      std::string said("$");
      said.append(std::to_string(line.size())).append("\r\n").append(line).append("\r\n");
      if (words[0].text == "ROLE") said = "*1\r\n$6\r\nmaster\r\n";
      if (words[0].text.starts_with("EVAL")) said = words[2].text == "1" ? granted_bytes : released_bytes;
      if (words.size() > 1 && words[1].text == "KILL") said = ":0\r\n";
      machine_.received(serial, said, now_, out_);
    }
  }

  reply const granted_ = parsed(granted_bytes);
  reply const released_ = parsed(released_bytes);
  client_machine machine_;
  reply_reader reader_;
  operation call_;
  actions out_;
  io_actions io_;
  instant now_{std::chrono::hours(1)};
};

}  // namespace bench
