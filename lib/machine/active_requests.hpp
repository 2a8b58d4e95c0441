#pragma once

#include <machine/owner_state.hpp>
#include <wire/kind.hpp>

#include <boost/container/small_vector.hpp>

namespace latchkey::detail {

// The requests of one name that others of this client may have to wait for: what ends a hold, what has gone by the
// direct lane, what leaves something to be repaired, and what nobody waits for any more. Most requests are tries that
// their callers still want, as many as there are waiters: those are not among them.
class active_requests {
 public:
  // \throws std::bad_alloc: nothing has changed.
  void make_room();
  // The request of this owner has begun, or changed.
  void note(owner_state& one);
  void forget(owner_state& one);

  // Something of this name was sent that nobody awaits any more, and its answer decides whether the lock is free for
  // this side: a new try would find this client's own remains.
  bool in_doubt(kind::traits const& rules, unsigned char mode, owner_state const* except = nullptr) const;
  bool release_sent() const;
  // The release of the last hold of another owner still waits to be sent.
  owner_state* unsent_release(owner_state const& except) const;
  // Another owner's release is under way that nobody waits for.
  bool dropped_release(owner_state const& except) const;
  // A force-unlock has run: whether a try of the direct lane ran before it nobody knows.
  void doubt_direct_tries();

 private:
  boost::container::small_vector<owner_state*, 1> all_;
};

}  // namespace latchkey::detail
