#pragma once

#include <codec/command_writer.hpp>
#include <codec/reply.hpp>
#include <machine/actions.hpp>
#include <machine/owner_state.hpp>
#include <wire/script.hpp>
#include <wire/server_error.hpp>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

struct context;
class outbox;

// One command that was sent, until its answer: requests are matched with replies by their order.
struct sent_call {
  enum class type : unsigned char {
    hello,     // a step of the handshake
    script,    // requests of owners
    renewals,  // of the watchdog
    plain,     // a query or a force-unlock
    kill,      // of an orphan
    check,     // does a lane lead to the same server?
    ping,
    wait,  // until replicas have what was answered
    role,
    tells,   // whoever listens there of what happened elsewhere
    asking,  // what is behind it is to be taken although the slot is another node's, as yet
    subscribe,
    unsubscribe,
    may_subscribe,  // asks for a channel of our own, to hear whether SUBSCRIBE is allowed
  };
  enum class hello_step : unsigned char {
    auth,
    select,
    name,
    info,
    probe,
    role,
    server,
    scripts,
    library,
    time,
    shards
  };

  type what = type::ping;
  hello_step step = hello_step::auth;
  bool whole = false;  // with the text of the script, not by its SHA-1
  ask asked = ask::none;
  bool bundled = false;
  kind const* which = nullptr;
  script const* text = nullptr;
  std::vector<owner_state*> owners{};
  std::vector<renewal*> renewals{};
  operation* plain = nullptr;  // null: its caller has left
  std::uint32_t serial = 0;    // kill, check: of which connection
  instant sent{};
};

// A call whose answer is not believed yet: replicas are to have what it says.
struct unsynced_call {
  sent_call call;
  reply answer;
};

// Told what became of a request that no owner has under way: a query, a force-unlock, a connect.
class plain_listener {
 public:
  // Of the server that is to be asked.
  virtual outbox& requests_of(operation const& plain) const = 0;
  // It leaves now.
  virtual void sends(operation const& plain) = 0;
  // Under whose number the server has what is asked for.
  virtual std::uint64_t shown_as(operation const& plain) const = 0;
  // `by`: of the server.
  virtual void answered(sent_call const& call, reply const& answer, outbox const& by) = 0;
  // Nothing ran, for a reason that says nothing of the server.
  virtual void again(operation& plain) = 0;
  // The server runs nothing at the moment.
  virtual void not_run(operation& plain, server_error const& why, std::string_view text) = 0;
  // Its connection was given up.
  virtual void unanswered(operation& plain) = 0;
  virtual void expire(operation& plain, error_code const& why) = 0;

 protected:
  ~plain_listener() = default;
};

// What is left of a connection that was given up.
struct remains {
  std::string id;
  std::string address;
  std::string run_id;  // of the server's process; empty: it does not say
  std::uint32_t serial = 0;
  std::deque<sent_call> calls;  // without an answer
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

  // Appends a command to what leaves at the end of the turn, and remembers it until its answer.
  void write(context& shared, words const& command, sent_call&& call);
  // The same, but whatever answers it is known by its words.
  void tell(context& shared, words const& command);
  // When it is looked at next: for an answer that is late, or to send a PING.
  void plan(context& shared);

  // Its end was no failure: the next one is opened at once.
  void rested(instant now) {
    retry_at = now;
    failures = soon_lost = 0;
  }
  void reset() {
    at = state::down;
    unanswered.clear();
    unsynced.clear();
    waits = false;
    reader = reply_reader{};
    out.clear();
    id.clear();
    address.clear();
    lent = false;
    polled = false;
    of_use = false;
  }

  role const of;
  std::uint32_t serial = 0;
  state at = state::down;
  std::deque<sent_call> unanswered;
  std::deque<unsynced_call> unsynced;  // the oldest first
  bool waits = false;                  // a WAIT is under way, for them and what is answered before it
  std::size_t replicas_asked = 0;      // by that WAIT
  reply_reader reader;
  std::string out;  // bytes to write at the end of the turn
  std::string id;   // as CLIENT INFO says; empty: it may not be asked
  std::string address;
  sent_call borrowed;      // direct: what the caller who has it has sent
  bool lent = false;       // direct: a caller has it
  bool polled = false;     // a PING is under way
  bool of_use = false;     // something was answered beside the handshake
  unsigned failures = 0;   // in a row; a handshake alone is no success
  unsigned soon_lost = 0;  // in a row: ended before they had lived for `retry_delay`
  bool counted = false;    // among the servers that can be asked
  bool was_up = false;     // at least once since the client was made
  instant since{};         // of the state
  instant heard{};         // the last sign of life
  instant retry_at{};      // not opened before
  instant no_haste{};      // until then another pause is made before the next attempt
  instant spent{};         // by then what was opened at once is paid for
  instant late_since{};    // what was late when the timer came late, too
  instant late_end{};      // no more time for that
  instant looked{};        // when it was last given some
  timer_node timer;
};

// On a Unix socket all connections have the same address: it tells none from another. It is the path, which Valkey 9
// sets in brackets.
inline bool has_no_address(std::string_view address) { return address.starts_with('/') || address.starts_with("[/"); }

}  // namespace latchkey::detail
