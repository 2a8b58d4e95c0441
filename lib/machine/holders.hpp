#pragma once

#include <machine/lock_name.hpp>
#include <machine/owner_state.hpp>

namespace latchkey::detail {

// The owners who hold one name, as far as this client knows, and what becomes of their holds: what leases show, the
// timers of their ends, their renewal, and how they are counted.
class holders {
 public:
  using list = few<owner_state*>;

  explicit holders(lock_name const& name) : of_(name) {}

  // \throws std::bad_alloc: nothing has changed.
  void make_room();

  bool empty() const { return all_.empty(); }
  // A copy: who is told of a loss may leave the list.
  list all() const { return all_; }
  instant latest_deadline() const;
  // Does what this owner holds keep others out of this mode?
  bool excludes(owner_state const& state, unsigned char mode) const;
  // Has another owner what keeps this one out?
  bool keep_out(owner_state const& state, unsigned char mode) const;

  hold& begin(owner_state& state, hold&& made);
  // What this call was granted, with a request that was sent then.
  void keep(owner_state& state, operation& call, unsigned char mode, instant sent, instant deadline);
  // It lasts until its deadline. Not if that has passed: what its holder has seen end does not come to life again,
  // though no timer has told this machine yet.
  bool lasts(hold const* hold) const;
  // How long the server may have it yet. A renewal that is on its way may have come there.
  nanoseconds rest_of(hold const& hold) const;
  void move_end(hold& hold, instant until);
  // If nothing of this mode is to be renewed any more.
  void stop_renewing(owner_state& state, unsigned char mode);

  // Whoever looks at it through a lease hears once that it is over.
  void tell(hold& ended, error_code why);
  // It is over without a release. The answer is true if nobody was told: the next unlock is.
  bool lose(owner_state& state, hold& ended, error_code why);
  // It is released, or nobody asks for a lost one any more.
  void forget(owner_state& state, hold& ended);
  // The client ends: it stays on the server until its lease ends.
  void leave(owner_state& state, hold& left);

 private:
  void note(owner_state& state);
  void count_lost();

  lock_name const& of_;
  list all_;
};

}  // namespace latchkey::detail
