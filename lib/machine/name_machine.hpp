#pragma once

#include <machine/context.hpp>
#include <machine/record.hpp>
#include <machine/subscriptions.hpp>
#include <wire/kind.hpp>
#include <wire/server_error.hpp>

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>

#include <string>

namespace latchkey::detail {

// All that a client knows and decides about one lock name: who holds it, who waits, what is under way.
//
// The records of the owners and the queue of waiters live here together, since every answer concerns both.
// Rules: docs/safety.md. Bodies: name_acquire.cpp (callers that want it), name_release.cpp (callers that end a hold),
// name_waiting.cpp (the queue and what wakes it), name_own_channel.cpp (waiters that stand in a queue on the server),
// name_command.cpp (what a kind can do beside), name_answers.cpp (what the server said), name_faults.cpp (lost
// connections and lost holds), name_machine.cpp (the rest).
class name_machine final : public listener {
 public:
  name_machine(context& shared, kind const& which, std::string name);
  ~name_machine();

  std::string const& name() const { return name_; }
  kind const& which() const { return kind_; }
  std::string channel() const { return kind_.channel(name_, {}); }
  // For config::on_event.
  void note(event_type type, std::uint64_t owner = 0, error_code error = {}, std::string_view text = {},
            nanoseconds took = {}) const;
  // The two have the same name and are of different kinds.
  void meet(name_machine& namesake);

  // --- callers ---
  // \throws std::bad_alloc: nothing has changed.
  void prepare(std::uint64_t owner);
  // The call that it was for does not begin.
  void unprepare(std::uint64_t owner) noexcept;
  void start(operation& call);
  void cancel(operation& call);
  void expire(operation& call);
  void drop(std::uint64_t owner, hold_id which);
  void unlink(std::uint64_t owner, hold_id which);
  bool holds(std::uint64_t owner) const;
  // A call without a wait of its own counts one more failed attempt; anyone if the error will not pass.
  void trouble(error_code const& why, std::string_view text, bool transient);
  void close();
  // Memory was short in the middle of a step: see client_machine.
  void abandon(actions& out) noexcept;

  // --- requests of records, from the outbox and the lanes ---
  // Before sending: decides what the request is by now and fills in the item. False: there is nothing to send.
  bool prepare(record& one, item& out, std::string& field, std::string& to_field);
  void answered(record& one, outcome const& answer);
  void unanswered(record& one);
  void settle(record& one);
  void not_run(record& one, server_error const* why, std::string_view text);

  // --- the watchdog ---
  std::string field_of(record const& one, unsigned char mode) const;
  void renewed(renewal& one, outcome const& answer);

  // --- messages ---
  void on_confirmed() override;
  void on_message(std::string_view payload) override;
  void on_refused() override;

  // --- time ---
  void on_hint();
  void on_linger();
  void on_own_hint(record& one);
  // Something was heard on the channel of this waiter alone.
  void wake_alone(record& one);
  void on_hold_deadline(hold& one);

  // Nothing is held, waited for, under way or listened to: may be destroyed.
  bool idle() const;

 private:
  using queue_type = boost::intrusive::list<operation>;

  // name_machine.cpp
  record& record_of(std::uint64_t owner);
  record* known(std::uint64_t owner) const;
  void arrive(record& one, operation& call);
  void dispatch(record& one, operation& call);
  void advance(record& one);
  void begin(record& one, request what);
  void finish(record& one);
  void send(record& one, bool may_go_direct);
  void complete(operation& call, error_code error = {}, std::string_view text = {});
  void watch_deadline(operation& call);
  void tidy(record& one);
  void tidy_served();
  bool unsettled(unsigned char mode, record const* except = nullptr) const;
  bool release_under_way() const;
  record* unsent_release(record const& except) const;
  bool kept_out(record const& one, unsigned char mode) const;
  bool parked(operation const& call) const { return !call.tried && unsettled(call.mode); }
  name_machine const* in_use_elsewhere(std::uint64_t owner) const;

  // name_acquire.cpp
  void acquire(record& one, operation& call);
  bool replaces_unsent_release(record const& one, operation const& call) const;
  void send_acquire(record& one, operation& call, bool may_go_direct);
  std::int64_t lease_for(operation const& call) const;
  void granted(record& one, request const& was, instant sent, outcome const& answer);
  void keep(record& one, request const& was, operation& call, instant deadline);
  void grant_others(std::uint64_t up_to);
  void served(operation& call);
  void busy(record& one, request const& was, std::int64_t hint);
  void untried(request const& was);
  void give_up(operation& call, error_code error);
  void take_back(record& one);
  void fail_acquire(record& one, request const& was, error_code error, std::string_view text);

  // name_command.cpp
  void command(record& one, operation& call);
  void on_command_answer(record& one, outcome const& answer);
  void on_unseen(record& one, request const& was);
  bool ends_unsettled_command(record& one);

  // name_waiting.cpp
  void join(record& one, operation& call);
  void note_told(operation& head);
  void leave(operation& call);
  void new_head();
  void try_head(bool may_go_direct = false);
  void try_run();
  void try_beside(operation& call, bool may_go_direct);
  void try_others();
  void wake_parked();
  void sleep_until_hint(std::int64_t hint);
  milliseconds sleep_time(std::int64_t hint, bool deaf, unsigned polls);
  void subscribe();
  void finish_once_calls(std::uint64_t up_to, unsigned sides = ~0u, std::int64_t least = 0);
  bool head_idle() const;

  // name_own_channel.cpp
  operation* waiter_of(record& one);
  void wait_alone(record& one, unsigned char mode, std::int64_t hint);
  void wake_all_alone();
  void leave_line(record& one);
  void on_leave_answer(record& one);

  // name_release.cpp
  void release(record& one, operation& call);
  void begin_release(record& one, hold& ended, operation* call);
  void end_unawaited(record& one, hold& ended);
  void extend(record& one, operation& call);
  bool streak_allows() const;
  bool can_hand_off(record const& from) const;
  void recall_unsent_try(record const& from);
  void pair_up(record& from, operation& waiter);
  void give_back(record& one, unsigned char mode, bool repeated = false);

  // name_answers.cpp
  static errc error_of(outcome const& answer);
  static std::string_view words_of(outcome const& answer);
  void on_acquire_answer(record& one, outcome const& answer);
  void on_release_answer(record& one, outcome const& answer);
  void on_hand_off_answer(record& one, outcome const& answer);
  void on_extend_answer(record& one, outcome const& answer);
  void conclude_release(record& one, request const& was, outcome const& answer);

  // name_faults.cpp
  void lose(record& one, hold& ended, error_code why);
  void note_holder(record& one);
  bool lasts(hold const* one) const;
  void lose_ended(record& one, unsigned char mode);
  void lose_side(record& one, unsigned char mode, error_code why);
  void repair(record& one, unsigned char mode);
  bool lapsed(record const& one) const;
  void requeue(record& one, unsigned char mode);
  void repair_sides(record& one, unsigned sides);
  void forget(record& one, hold& ended);
  void count_attempt(record& one, error_code const& why, std::string_view text, bool transient);
  void stop_renewing(record& one, unsigned char mode);

  context& shared_;
  kind const& kind_;
  kind_stats& tally_;
  std::string const name_;

  // Of most names there are many, each with one owner: lists that begin inside.
  template <class T>
  using few = boost::container::small_vector<T, 1>;

  record_set records_;
  few<record*> active_;        // records with a request under way
  few<record*> holders_;       // records with live holds
  few<std::uint64_t> served_;  // owners of whom a call was completed in this step
  queue_type queue_;           // of waiters; only the head talks to the server
  unsigned once_waiting_ = 0;  // calls without a wait in the queue
  std::uint64_t busy_answers_ = 0;
  std::uint64_t tickets_ = 0;
  bool dirty_ = false;  // a message came that no try has followed yet
  int streak_ = 0;      // hand-offs since the lock was last really released
  instant streak_began_{};
  name_machine* next_namesake_ = this;  // a ring: machines of the same name, one for each kind
  timer_node hint_;                     // when the head tries again without a message
  timer_node linger_;                   // when the channel is given up
};

}  // namespace latchkey::detail
