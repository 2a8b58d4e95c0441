#pragma once

#include <latchkey/event.hpp>
#include <machine/operation.hpp>
#include <wire/node_address.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace latchkey::detail {

// An event with words of its own; see latchkey::event.
struct note {
  event_type type;
  std::string lock{};
  std::uint64_t owner = 0;  // 0: nobody
  error_code error{};
  std::string text{};
  nanoseconds took{0};
  std::string_view kind{};  // of static storage
  std::uint64_t context = 0;
};

// What a step of a machine asks the engine to do at once, outside the mutex. Appended to, never read, by machines.
struct actions {
  struct loss {
    hold_link* link;  // valid while the mutex that guarded the step is held
    error_code why;
  };

  std::vector<operation*> completed;  // ready: hand the result to the caller
  std::vector<loss> lost;             // tell the holder, on the client's executor
  std::vector<note> notes;            // for config::on_event; empty if nobody listens
  bool turn = false;                  // client_machine::turn has something to do

  void clear() {
    completed.clear();
    lost.clear();
    notes.clear();
    turn = false;
  }
  bool empty() const { return completed.empty() && lost.empty() && notes.empty() && !turn; }
};

// The three connections of a session. The shared one leads; the others go to its peer. A scout's are of no session.
enum class role : unsigned char { shared, direct, messages, scout };

// What a turn asks the engine to do with sockets. Serials name connections and are never reused.
struct io_actions {
  struct opening {
    role as;
    std::uint32_t serial;
    bool to_peer = false;      // the address that the shared connection reached, not the name again
    std::uint32_t leader = 0;  // that connection
    node_address to{};         // else
  };
  struct writing {
    std::uint32_t serial;
    std::string bytes;
  };

  std::vector<std::uint32_t> close;  // discard at once; nothing more is to be heard of it
  std::vector<std::uint32_t> abort;  // the same, and what has not left yet is never to arrive
  std::vector<opening> open;
  std::vector<writing> write;
  std::vector<std::uint32_t> lend;  // direct: the handshake is over, blocking callers may borrow the socket

  void clear() {
    close.clear();
    abort.clear();
    open.clear();
    write.clear();
    lend.clear();
  }
};

}  // namespace latchkey::detail
