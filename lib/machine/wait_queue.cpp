#include <machine/owner_state.hpp>
#include <machine/wait_queue.hpp>

#include <algorithm>

namespace latchkey::detail {

bool wait_queue::head_idle() const {
  return !empty() && head().where == operation::place::waiting && !head().of_owner->ask_.under_way();
}

wait_queue::iterator wait_queue::first_once() {
  auto it = all_.end();
  for (unsigned found = 0; found < once_;) found += (--it)->once;
  return it;
}

void wait_queue::join(operation& call) {
  call.where = operation::place::waiting;
  call.queued = true;
  call.tried = false;
  call.joined = busy_answers_;
  call.ticket = ++tickets_;
  all_.push_back(call);
  ++size_;
  once_ += call.once;
  owner_state& one = *call.of_owner;
  ++one.queued;
  if (!one.waits) one.waits = &call;
}

void wait_queue::leave(operation& call) {
  bool const was_head = is_head(call);
  call.queued = false;
  once_ -= call.once;
  --size_;
  auto next = all_.erase(all_.iterator_to(call));
  // The pauses between looks grow with the time that the lock is not free, whoever looks.
  if (was_head && !call.yes && next != all_.end()) next->polls = std::max(next->polls, call.polls);
  owner_state& one = *call.of_owner;
  --one.queued;
  if (one.waits != &call) return;
  while (one.queued > 0 && next->of_owner != &one) ++next;
  one.waits = one.queued > 0 ? &*next : nullptr;
}

}  // namespace latchkey::detail
