#include <machine/succession.hpp>
#include <machine/waiters.hpp>

namespace latchkey::detail {

bool succession::may_pass(owner_state const& from, operation const& call) const {
  return streak_.allows(of_.shared_.settings.local_handoff, of_.shared_.now) && of_.tenure_.may_pass(from, call);
}

bool succession::hands_off() const { return of_.kind_->rules().hand_off && !of_.tenure_.warmed(); }

bool succession::can_hand_off(owner_state const& from) const {
  context const& shared = of_.shared_;
  if (!hands_off() || !streak_.allows(shared.settings.local_handoff, shared.now) || !queue_.head_idle() ||
      shared.closed())
    return false;
  operation const& head = queue_.head();
  if (head.of_owner == &from || head.mode != from.ask_->mode || shared.barred.has(*head.of_owner)) return false;
  if (!of_.tenure_.may_be_handed(from, *head.of_owner)) return false;
  return head.tried || !of_.active_.in_doubt(of_.kind_->rules(), head.mode, &from);
}

bool succession::unsent_try() const {
  return streak_.runs() && !hands_off() && !queue_.empty() && queue_.head().where == operation::place::trying &&
         queue_.head().of_owner->ask_->where == request::place::outbox;
}

}  // namespace latchkey::detail
