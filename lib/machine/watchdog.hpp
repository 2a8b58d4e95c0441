#pragma once

#include <machine/owner_state.hpp>

#include <boost/intrusive/list.hpp>

namespace latchkey::detail {

struct context;
class outbox;

// What is to be renewed when. Fields stand in the order of their next renewal, so a tick looks only at the front:
// a hold costs a place in a list, not a timer.
class watchdog {
 public:
  watchdog(context& shared, outbox& requests);
  ~watchdog();

  void add(renewal& renewal);     // it has a watchdog hold now
  void remove(renewal& renewal);  // its last watchdog hold ended
  void again(renewal& renewal);   // an answer came, or none did: plans the next renewal
  void tick();                    // the timer: what is due goes to the outbox

  // After a reconnect the server may have come back without what it had, or be another one: every hold is to be looked
  // after before anything else is asked.
  void want_all();
  // The same without a reconnect: soon.
  void want_all_now();
  // Another server has the lock: is what this owner holds there?
  void look_for(renewal& renewal);
  bool wants_all() const { return !urgent_.empty(); }
  bool any() const { return !regular_.empty() || !retries_.empty() || !urgent_.empty(); }
  void catch_up();  // as much of it as fits into this turn goes to the outbox

 private:
  // Without a size: a renewal leaves either list by itself.
  using list = boost::intrusive::list<renewal, boost::intrusive::constant_time_size<false>>;
  static bool has_watchdog_hold(renewal const& renewal);
  static bool wanted(renewal const& renewal);
  void leave_hanging(renewal& renewal);
  void plan();
  void take(list& from, instant until, std::size_t& taken);
  void end_turn(std::size_t taken);

  context& shared_;
  outbox& requests_;
  milliseconds const period_;
  list regular_;          // due one period after their last renewal
  list retries_;          // without an answer: due sooner
  list urgent_;           // due before anything else is sent
  instant not_before_{};  // after a full turn others have their turn first
  timer_node timer_;
};

}  // namespace latchkey::detail
