#pragma once

#include <base/instant.hpp>
#include <latchkey/acquire_options.hpp>
#include <latchkey/error.hpp>
#include <machine/timer_queue.hpp>
#include <wire/kind.hpp>

#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::detail {

class hold_link;
struct owner_state;

// Numbers the holds of a client; never reused. 0: none.
using hold_id = std::uint64_t;

// Why there is nothing to unlock although the owner holds the lock.
inline constexpr std::string_view only_its_lease = "a lease shows this hold, and only that lease releases it";

// The least that a first try is given: a round trip that is on its way is worth more than the end of a shorter wait.
inline constexpr milliseconds first_try_time{50};

// No bundle is larger.
inline constexpr std::size_t most_bundled = 48;

// What became of a hold that is to go on without this client.
struct detached {
  std::string_view refused{};  // why it stays as it is; empty: it does not
  std::string owner{};         // `uuid:number`, as the server shows it; empty: it was over
};

// In one of the machine's queues.
using queue_hook = boost::intrusive::list_base_hook<>;

// That a server of a cluster sent a request to another one, or said that it should come again. A byte of every request.
class detour {
 public:
  // This once another server is asked: ASK.
  void ask(bool once) { bits_ = static_cast<unsigned char>((bits_ & ~1u) | (once ? 1u : 0u)); }
  bool asking() const { return (bits_ & 1u) != 0; }
  bool take_asking() {
    bool const was = asking();
    ask(false);
    return was;
  }

  unsigned times() const { return bits_ >> 1; }  // in a row
  unsigned rests() const { return times() / most; }
  bool due_a_rest() const { return times() > 0 && times() % most == 0; }
  void next() { count(times() + 1); }
  // There is nothing to be tried before it has rested.
  void tire() { count((rests() + 1) * most); }

 private:
  static constexpr unsigned most = 5;  // without a rest
  void count(unsigned n) { bits_ = static_cast<unsigned char>(std::min(n, 25 * most) << 1 | (bits_ & 1u)); }

  unsigned char bits_ = 0;
};

// One call of a user, from its start to its completion. Whoever starts it owns it and keeps it, and the
// name it points to, alive until the machine says that it is completed.
struct operation : queue_hook {
  enum class type : unsigned char { acquire, release, extend, force_unlock, query, command, connect, adopt };
  // Where the machine has it. idle: not started, or completed.
  enum class place : unsigned char { idle, waiting, trying, behind_owner, plain };

  // --- set by the caller ---
  type what = type::acquire;
  unsigned char mode = 0;
  bool once = false;        // acquire: one attempt, no waiting
  bool keeps = true;        // acquire: a grant is a hold of this client; else the caller alone answers for it
  bool member = false;      // acquire: for a lock of several members, each of which asks its server
  bool comes_back = false;  // acquire, once: its caller waits next; untried where the lock is left to others
  bool self_timed = false;  // the caller calls expire() by its own clock: no timer of ours
  query question = query::is_locked;
  unsigned char command = 0;  // command: which, as the kind numbers them
  kind const* which = nullptr;
  std::string_view name;
  std::uint64_t owner = 0;
  instant started{};
  instant deadline = never;   // of the whole call
  std::uint64_t bundle = 0;   // acquire without waiting: leaves in one call with its like, all are granted or none
  milliseconds lease{0};      // acquire: 0 is none (the watchdog's, if the kind renews); extend, command: as it says
  milliseconds max_hold{0};   // acquire: 0 is none
  milliseconds line_time{0};  // acquire: see item
  hold_link* link = nullptr;  // acquire: where to show the hold
  hold_id hold = 0;  // release, extend: which; release: 0 is the owner's latest without a lease. acquire: the result
  std::int64_t amount = 1;  // acquire, command: see item
  std::uint64_t field = 0;  // adopt: under whose number the server shows it; the client is the argument, if another
  std::shared_ptr<std::string const>
      argument;  // acquire, command: see item; force_unlock: of whose field alone; query: that, or a text

  // --- set by the machine before completion ---
  error_code error;         // while it waits: what the latest answer refused it with, if it did
  std::string text;         // the server's latest words
  std::int64_t value = 0;   // query, command; adopt: how long it still lasts, milliseconds, is set by the caller
  std::uint64_t token = 0;  // acquire: fencing token, 0 is none
  release_result released = release_result::released;
  bool untried = false;  // acquire: not granted because of another of its bundle, or `comes_back`
  bool yes = false;      // acquire: granted; extend, command: done; force_unlock: there was one; connect: answered

  // --- the machine's own ---
  place where = place::idle;
  bool waited = false;  // was told busy at least once
  bool tried = false;   // its try was answered: busy
  bool queued = false;  // stands in the queue of the name
  bool late = false;    // its wait is over, and it is not known yet whether somebody has the lock
  detour sent_on{};
  bool unseen = false;       // a copy of its request has left, and no answer has said what became of it
  unsigned attempts = 0;     // requests that failed without an answer
  unsigned polls = 0;        // tries without a message since it joined
  std::uint64_t joined = 0;  // the name's count of busy answers when it joined
  std::uint64_t ticket = 0;  // its number in the order of arrival at the queue
  owner_state* of_owner = nullptr;
  timer_node expiry;  // at `deadline`

  // Is it awaited no longer than its own wait?
  bool waits() const { return what == type::acquire && !once; }
  // The next answer that says it is busy ends it.
  bool asks_once() const { return once || late; }
  // Until when it may wait for others to go first.
  instant patience() const { return asks_once() ? started : deadline; }
  // It gives something back: whoever gives up waiting for it still wants it, and a client that closes still does it.
  bool goes_on() const { return what == type::release || (what == type::command && which->rules_of(command).persists); }
  // When its caller has to hear something, at the latest.
  instant limit() const { return waits() ? std::max(deadline, after(started, first_try_time)) : deadline; }
};

}  // namespace latchkey::detail
