#pragma once

#include <machine/waiters.hpp>
#include <wire/kind.hpp>
#include <wire/server_error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

namespace latchkey::detail {

class name_machine;

// Machines of one name, one for each kind, stand in a ring.
class namesakes {
 public:
  namesakes() = default;
  namesakes(namesakes const&) = delete;
  namesakes& operator=(namesakes const&) = delete;

  // `other` is of a different kind.
  void meet(namesakes& other) {
    next_ = other.next_;
    other.next_ = this;
  }
  // Of one without namesakes itself.
  name_machine& next() const;

 protected:
  ~namesakes() {
    namesakes* last = this;
    while (last->next_ != this) last = last->next_;
    last->next_ = next_;
  }

 private:
  namesakes* next_ = this;
};

// All that a client knows and decides about one lock name: who holds it, who waits, what is under way.
//
// The owners and the queue of waiters live here together, since every answer concerns both.
// Rules: docs/safety.md. Bodies: name_acquire.cpp (callers that want it), name_release.cpp (callers that end a hold),
// name_closing.cpp (the end of the client), name_command.cpp (what a kind can do beside), name_answers.cpp (what the
// server said), name_faults.cpp (lost connections and lost holds), name_machine.cpp (the rest).
class name_machine final : private name_with_waiters, public namesakes {
 public:
  name_machine(context& shared, home& at, kind const& which, std::string_view name);
  ~name_machine();

  std::string_view name() const { return name_; }
  kind const& which() const { return *kind_; }
  using lock_name::note;
  using waited_name::add_field;
  using waited_name::at_;
  using waited_name::correct;
  using waited_name::field_of;
  using waited_name::shown_as;
  using waited_name::trusted_until;

  // --- callers ---
  // \throws std::bad_alloc: nothing has changed.
  owner_state& prepare(operation const& call);
  // The call that it was for does not begin.
  void unprepare(std::uint64_t owner) noexcept;
  // `prepared`: what prepare() has found for it, if nothing was started since.
  void start(operation& call, owner_state* prepared = nullptr);
  void cancel(operation& call);
  void expire(operation& call);
  void drop(std::uint64_t owner, hold_id which);
  void unlink(std::uint64_t owner, hold_id which);
  void renew_no_longer(std::uint64_t owner, hold_id which);
  // The thread that this owner stands for has ended: nobody is left to release what no lease shows.
  void thread_ended(std::uint64_t owner);
  // Would another owner's wait for this mode end only with a release by this owner?
  bool keeps_out(std::uint64_t owner, unsigned char mode) const;
  bool keeps_back(operation const& call) { return waiting().keeps_back(call); }
  using name_with_waiters::queue;
  // A call without a wait of its own counts one more failed attempt; anyone if the error will not pass.
  void trouble(error_code const& why, std::string_view text, bool transient);
  // No new calls: what waits ends with `closed`, leases are told of it, and what `closer` holds by no lease is
  // released.
  void close(std::uint64_t closer);
  // Nothing is awaited any more.
  void give_up_calls();
  // What is still held stays on the server until its lease ends.
  void leave();

  // --- requests of owners, from the outbox and the lanes ---
  // Before sending: decides what the request is by now and fills in the item. False: there is nothing to send.
  bool prepare(owner_state& state, item& out, std::string& field, std::string& to_field);
  void answered(owner_state& state, outcome const& answer);
  void unanswered(owner_state& state, std::string_view text);
  void resolve(owner_state& state);
  // `elsewhere`: it is asked for there, this once.
  void not_run(owner_state& state, server_error const* why, std::string_view text, home* elsewhere = nullptr);
  // The server refuses what only time can cure: is this one to be asked again? A release is, as long as there may be
  // something to release.
  static bool goes_again(owner_state const& state, instant now);
  // It still waits until late copies of it cannot run: that took one more attempt.
  void waits_on(owner_state& state, server_error const& why, std::string_view text);

  // --- the watchdog ---
  void renewed(renewal& renewal, outcome const& answer);
  void renewal_unanswered(renewal& renewal, error_code const& why);

  // --- force-unlock ---
  void forced(operation const& by, instant sent);
  void doubt() override;
  // At once, behind whatever leaves before.
  void ask_after_holder();

  void on_hold_deadline(hold& hold);
  // What was done without the server has lasted for a while.
  void on_turn_due();

  // Nothing is held, waited for, under way or listened to: may be destroyed.
  bool idle() const;

 private:
  friend struct transfer;  // holds that pass between clients
  friend struct takeover;  // what becomes of it on another server

  // name_machine.cpp
  owner_state& state_of(std::uint64_t owner);
  void arrive(owner_state& state, operation& call);
  void dispatch(owner_state& state, operation& call);
  void advance(owner_state& state);
  void begin(owner_state& state, request what);
  void finish(owner_state& state);
  void send(owner_state& state, bool may_go_direct);
  void complete(operation& call, error_code error = {}, std::string_view text = {}) override;
  void watch_deadline(operation& call);
  void tidy(owner_state& state);
  void tidy_served();
  name_machine* in_use_elsewhere(std::uint64_t owner) const;

  // name_closing.cpp
  std::vector<operation*> calls();
  std::vector<owner_state*> all_owners();

  // name_acquire.cpp
  void acquire(owner_state& state, operation& call);
  bool replaces_unsent_release(owner_state const& state, operation const& call);
  void send_acquire(operation& call, bool may_go_direct) override;
  std::int64_t lease_for(operation const& call) const;
  void granted(owner_state& state, request const& was, instant sent, outcome const& answer);
  void begin_turn(owner_state& state, operation& call);
  void untried(request const& was);
  void give_up(operation& call, error_code error);
  void take_back(owner_state& state);
  void fail_acquire(owner_state& state, request const& was, outcome const& answer);
  void fail_acquire(owner_state& state, request const& was, error_code error, std::string_view text);

  // name_command.cpp
  void command(owner_state& state, operation& call);
  void on_command_answer(owner_state& state, outcome const& answer);
  void on_unseen(owner_state& state, request const& was);
  bool ends_doubtful_command(owner_state& state);
  owner_state* concerned(request const& asked) const;
  void foresee(request const& asked);
  void on_end_moved(request const& was, outcome const& answer);

  // name_release.cpp
  void release(owner_state& state, operation& call);
  bool end_turn(owner_state& state, hold& ended);
  void begin_release(owner_state& state, hold& ended, operation* call);
  void end_unawaited(owner_state& state, hold& ended);
  void extend(owner_state& state, operation& call);
  void recall_unsent_try(owner_state const& from);
  void pair_up(owner_state& from, operation& waiter);
  void hand_over(owner_state& leaving, operation& head, bool may_go_direct) override;
  void pass_on(owner_state& from, operation& to) override;
  void leave_line(owner_state& state);
  void give_back(owner_state& state, unsigned char mode, bool repeated = false);

  // name_answers.cpp
  void on_acquire_answer(owner_state& state, outcome const& answer);
  void on_release_answer(owner_state& state, outcome const& answer);
  void on_hand_off_answer(owner_state& state, outcome const& answer);
  void on_extend_answer(owner_state& state, outcome const& answer);
  void told_busy(owner_state& state, request const& was, std::int64_t hint);
  void on_unseen_give_back(owner_state& state, outcome answer);
  void conclude_release(owner_state& state, request const& was, outcome const& answer);

  // name_faults.cpp
  void lose(owner_state& state, hold& ended, error_code why);
  void lose_ended(owner_state& state, unsigned char mode);
  void end_extensions(owner_state& state);
  void lose_mode(owner_state& state, unsigned char mode, error_code why);
  void repair(owner_state& state, unsigned char mode);
  bool lapsed(owner_state const& state) const;
  void requeue(owner_state& state, unsigned char mode, bool repeated = false);
  void repair_modes(owner_state& state, unsigned modes);
  void count_attempt(operation* call, error_code const& why, std::string_view text, bool transient);
  void note_at_risk(renewal& renewal, error_code const& why, std::string_view text);
  void after_renewal(renewal& renewal);
};

inline name_machine& namesakes::next() const { return static_cast<name_machine&>(*next_); }

// A machine in the set of them. What the set knows of it never changes.
class known_name {
 public:
  known_name(context& shared, home& at, kind const& which, std::string_view name) : machine_(shared, at, which, name) {}

  name_machine& operator*() const { return machine_; }
  name_machine* operator->() const { return &machine_; }

 private:
  mutable name_machine machine_;
};

struct name_view {
  kind const* which;
  std::string_view name;
};

inline name_view view_of(name_view const& key) { return key; }
inline name_view view_of(known_name const& of) { return {&of->which(), of->name()}; }

inline std::string_view name_of(std::string_view name) { return name; }
template <class A>
std::string_view name_of(A const& of) {
  return view_of(of).name;
}

// Of the name alone, by which namesakes of other kinds are found.
struct name_hash {
  using is_transparent = void;
  template <class A>
  std::size_t operator()(A const& of) const {
    return std::hash<std::string_view>{}(name_of(of));
  }
};

struct name_equal {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(A const& name, B const& other) const {
    if (name_of(name) != name_of(other)) return false;
    if constexpr (std::is_same_v<A, std::string_view> || std::is_same_v<B, std::string_view>)
      return true;  // whatever its kind
    else
      return view_of(name).which->same_as(*view_of(other).which);
  }
};

// The names of a client. A machine knows its name: the set of them has no second copy.
using name_set = std::unordered_set<known_name, name_hash, name_equal>;

}  // namespace latchkey::detail
