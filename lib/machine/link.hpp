#pragma once

#include <codec/command_writer.hpp>
#include <codec/reply_reader.hpp>
#include <machine/actions.hpp>
#include <machine/record.hpp>
#include <wire/script.hpp>

#include <deque>
#include <string>
#include <vector>

namespace latchkey::detail {

// One command that was sent, until its answer: requests are matched with replies by their order.
struct sent_call {
  enum class type : unsigned char {
    hello,     // a step of the handshake
    script,    // requests of records
    renewals,  // of the watchdog
    plain,     // a query or a force-unlock
    kill,      // fences a discarded connection
    check,     // does a lane lead to the same server?
    ping,
    subscribe,
    unsubscribe,
  };
  enum class hello_step : unsigned char { auth, select, name, info, probe, role, scripts };

  type what = type::ping;
  hello_step step = hello_step::auth;
  bool whole = false;  // with the text of the script, not by its SHA-1
  ask asked = ask::none;
  bool bundled = false;
  kind const* which = nullptr;
  script const* text = nullptr;
  std::vector<record*> records{};
  std::vector<renewal*> renewals{};
  operation* plain = nullptr;  // null: its caller has left
  std::uint32_t serial = 0;    // kill, check: of which connection
  instant sent{};
};

// One connection of the session, as far as it can be known without a socket.
struct link {
  enum class state : unsigned char {
    down,
    opening,   // the engine connects
    greeting,  // the handshake is under way
    checking,  // the shared connection looks whether this one leads to the same server
    up,
  };

  explicit link(role as) : of(as) {
    timer.what = timer_node::type::link;
    timer.of = this;
  }

  void reset() {
    at = state::down;
    unanswered.clear();
    reader = reply_reader{};
    out.clear();
    id.clear();
    address.clear();
    lent = false;
    polled = false;
  }

  role const of;
  std::uint32_t serial = 0;
  state at = state::down;
  std::deque<sent_call> unanswered;
  reply_reader reader;
  std::string out;  // bytes to write at the end of the turn
  std::string id;   // as CLIENT INFO says; empty: it may not be asked
  std::string address;
  bool lent = false;      // direct: a caller has it
  bool polled = false;    // a PING is under way
  unsigned failures = 0;  // in a row
  bool was_up = false;    // at least once since the client was made
  instant since{};        // of the state
  instant heard{};        // the last sign of life
  instant retry_at{};     // not opened before
  timer_node timer;
};

// A connection that was given up while requests on it were unanswered.
struct discarded {
  std::string id;
  std::string address;
  std::uint32_t serial = 0;
  bool asked = false;              // its KILL is under way
  std::vector<operation*> forced;  // force-unlocks: told only after the KILL's answer
};

}  // namespace latchkey::detail
