#pragma once

#include <codec/command_writer.hpp>
#include <codec/reply.hpp>
#include <wire/item.hpp>
#include <wire/script.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::detail {

// What is published when a lock goes free. Redisson: LockPubSub.UNLOCK_MESSAGE.
inline constexpr std::string_view freed_message = "0";

// A lock kind: which keys, which channel, which scripts, what an answer means, and how callers wait for it.
// Everything else - waiting, renewing, cancelling, loss, hand-off - is the same for all kinds.
//
// One without parameters is made once and never destroyed: a client of static storage may still release while the
// process exits. One with parameters is made as often as it is wanted: equal ones are one kind, and whoever keeps more
// than a call (a handle, the machine of a name) keeps it by a kind_ptr.
class kind {
 public:
  // May an owner who holds `live[mode]` times try at once, without queueing behind others? `already_held`: never twice;
  // `too_often`: not so many times.
  enum class admission : unsigned char { queue, at_once, already_held, too_often, would_deadlock };

  struct traits {
    std::string_view name;           // as in events and counters: a literal, whatever the parameters
    std::string parameters{};        // tells kinds of one name apart; they take each other for strangers
    bool exclusive = true;           // one owner at a time: a first grant proves that all others lost theirs
    bool hand_off = true;            // a release may pass the lock on to a waiter of this client
    bool turns = false;              // what the server shows of one owner serves others of its client, too
    unsigned char turn_mode = 0;     // in this mode alone, which one owner has at a time
    bool grant_wakes_next = false;   // after a grant the next waiter tries at once (shared holds, permits)
    bool takes = true;               // a grant takes something that must be given back if nobody wants it any more
    bool grant_for_all = false;      // what one waiter is granted, all are who waited when it was asked for (a latch)
    bool renews = true;              // the watchdog renews a hold without a lease; else that lasts until its release
    bool by_id = false;              // any client that knows what its owner is called may extend a hold, or end it
    std::int64_t remembers = 0;      // milliseconds: how long the server can tell whether a request ran (unseen)
    bool own_channel = false;        // every waiter enqueues on the server at arrival and has its own channel
    bool claims = false;             // who waits for more than one leaves word on the server, in the name of its client
    bool listens = true;             // waiters are told of a release on the channel; else they can only poll
    bool polls = false;              // waiters try again after poll_first, doubling to poll_most, told or not
    std::int64_t poll_first = 50;    // milliseconds
    std::int64_t poll_most = 1'000;  // milliseconds
    std::int64_t hint_most = 0;      // milliseconds, longest sleep of a waiter; 0: the watchdog time
    bool tokens = false;             // a grant carries a fencing token, and query::token is understood
    unsigned char modes = 1;         // how many share one state of an owner and one queue (read, write)
    unsigned char shared_modes = 0;  // of an exclusive kind, one bit for each mode: several owners hold it at once
    // In the order of `ask`, from acquire on, and of item::command. Null: it has no such request.
    std::array<lazy_script const*, 7> scripts{}, commands{};

    // May two owners hold these modes beside each other, whatever else is held?
    bool shares(unsigned char a, unsigned char b) const { return (shared_modes >> a & shared_modes >> b & 1) != 0; }
  };

  explicit kind(traits t) : traits_(std::move(t)) {}
  virtual ~kind() = default;
  kind(kind const&) = delete;
  kind& operator=(kind const&) = delete;

  traits const& rules() const { return traits_; }

  bool same_as(kind const& other) const {
    return this == &other || (traits_.name == other.traits_.name && traits_.parameters == other.traits_.parameters);
  }
  // By so many kind_ptrs, if it is counted.
  unsigned kept_by() const { return kept_.load(std::memory_order_relaxed); }
  // What is never destroyed is not counted: all threads would write to one place.
  friend void intrusive_ptr_add_ref(kind const* one) noexcept {
    if (!one->traits_.parameters.empty()) one->kept_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(kind const* one) noexcept {
    if (!one->traits_.parameters.empty() && one->kept_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete one;
  }

  // --- keys and channels ---
  virtual std::string channel(std::string_view name, std::string_view field) const = 0;
  // Appends what stands for an owner: `uuid:number`, if the kind says nothing else.
  virtual void add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const;
  std::string field(std::string_view client_id, std::uint64_t owner, unsigned char mode) const {
    std::string made;
    add_field(made, client_id, owner, mode);
    return made;
  }
  // Do the channel and all keys of this lock stand in the slot of its name, whatever the slot is? Not if the braces of
  // the name mean one thing to the server and another to Redisson: `a{b`, `a}b`, `x{}y`. A cluster has no such lock.
  virtual bool in_one_slot(std::string_view name) const;

  // --- scripts ---
  // The script of a request; the same object means that items may share one call.
  virtual script const& script_for(ask what) const;
  // The script of several acquires of which all are granted or none, with keys and arguments as those of one; what is
  // not granted is busy, refused, or untried for the sake of another. Null: this kind has none.
  virtual script const* acquire_all() const { return nullptr; }
  // Appends the KEYS of one item: names that stand in one slot, the lock's own the first of them, and no channel.
  virtual void add_keys(item const& item, words& command) const = 0;
  // Appends the ARGV of one item, its channel the first of them if the script publishes.
  virtual void add_arguments(item const& item, words& command) const = 0;
  // What one element of the script's answer means. Never `granted` by default.
  virtual outcome read(ask what, item const& item, reply const& answer) const = 0;

  // --- questions: one plain command each, answered by read_query; safe to ask twice ---
  virtual void add_query(query what, item const& item, words& command) const;
  // is_locked, is_held_by: 0 or 1. hold_count: the count. time_to_live: milliseconds, -1 none, -2 free. token: the
  // latest, 0 if there was none yet. rest: as time_to_live, -2 if the hold is not there.
  // False: an answer of the wrong shape.
  virtual bool read_query(query what, reply const& answer, std::int64_t& value) const;

  // --- commands of its own: what it can do beside being taken and given back ---
  struct command_rules {
    bool repeats = true;    // goes again, as `repeated`, when its answer was lost; else the caller hears that it was
    bool persists = false;  // goes on when its caller has given up, as a release does
    bool shortens = false;  // brings an end nearer than waiters were told, and nobody publishes that
  };
  virtual script const& command_script(unsigned char command) const;
  virtual command_rules rules_of(unsigned char command) const;
  // The owner whose hold a command with this argument ends, or moves the end of; 0: nobody of this client.
  virtual std::uint64_t concerns(unsigned char command, std::string_view argument, std::string_view client_id) const;

  // --- waiting ---
  // Does this message let a waiter try? What else comes on a channel is noise.
  virtual bool wakes(std::string_view message) const = 0;
  virtual admission admit(unsigned char mode, int const* live) const = 0;

 protected:
  // A question that no command answers: a script of a few lines, sent whole, with the name as key and the field.
  static void add_script(std::string_view text, item const& item, words& command);

 private:
  traits traits_;
  mutable std::atomic<unsigned> kept_{0};
};

using kind_ptr = boost::intrusive_ptr<kind const>;

// The one of its class and these arguments: see kind.
template <class Kind, auto... arguments>
kind const& lasting() {
  static kind const& the_one = *kind_ptr(new Kind(arguments...)).detach();
  return the_one;
}

// The reentrant lock, Redisson's RedissonLock.
kind const& reentrant_kind();

// `prefix:{name}`, or `prefix:name` if the name has a brace of its own (Redisson's rule).
std::string prefixed(std::string_view prefix, std::string_view name);
// The same as a word of a command.
void add_prefixed(words& command, std::string_view prefix, std::string_view name);

// `{name}:suffix`, or `name:suffix` if the name has a brace of its own.
std::string suffixed(std::string_view name, std::string_view suffix);

}  // namespace latchkey::detail
