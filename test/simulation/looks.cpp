#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

// Whoever holds by lock() or a guard sees nothing of it, and is told by unlock: what its client knows stands for that.
void simulation::look_at_locks() {
  if (kind_.used_as != simulated_kind::use::holds) return;  // a permit taken by its id lasts as its caller knows
  for (task* held : holders_)
    if (!held->link) {
      auto const& machine = nodes_[held->client]->machine;
      held->shown.show(machine.trusted_until(*held->which, held->key, held->owner, held->hold));
    }
}

// What leases show is no more than what their machine holds, and nobody holds it for longer than he may.
void simulation::check_shown() {
  if (kind_.used_as != simulated_kind::use::holds) return;
  for (task const* held : holders_)
    if (held->max_hold.count() > 0) check_longest(*held);
  if (!std::exchange(look_again_, false)) return;
  for (auto const& me : nodes_) {
    if (me->gone) continue;
    stats known;
    me->machine.snapshot(known);
    auto const shown = static_cast<std::uint64_t>(std::count_if(holders_.begin(), holders_.end(), [&](auto const* one) {
      return one->link && one->client == me->number && one->trusted(client_time(*me));
    }));
    if (shown > known.held)
      fail(
          "leases of " + me->id + " show " + std::to_string(shown) + " holds, and it has " + std::to_string(known.held),
          eye::shown);
  }
}

// Behind a longest hold the server has nothing of it, unless a request came late for a fault's sake.
void simulation::check_longest(task const& held) {
  node const& me = *nodes_[held.client];
  lock_state const& lock = lock_of(held.key);
  moment const ends = true_time(me, detail::after(held.done_at, held.max_hold)) + 2 * network_.longest_way() + ms(20);
  if (now_ <= ends || !at_ease(me) || me.troubled_until > started_.at(&held) || lock.refused ||
      extended_.contains(&held))
    return;
  std::string const field = field_of(held);
  auto const same = [&](task const* one) { return one != &held && one->key == held.key && field_of(*one) == field; };
  if (std::any_of(holders_.begin(), holders_.end(), same) || std::any_of(open_.begin(), open_.end(), same)) return;
  auto const there = kind_.look(data_of(lock), lock.name, field);
  if (there.count > 0 && there.ends != keyspace::forever && at(me).when_gone(there.ends) > ends + lost_rate_)
    fail("the server has the hold of " + held.label + " for longer than it may last", eye::shown);
}

// The client itself has taken it away: its own holders know.
void simulation::check_forced(task const& forced) {
  look_at_locks();
  for (task const* held : holders_)
    if (held->client == forced.client && held->key == forced.key && held->done_at < forced.started &&
        held->trusted(client_time(*nodes_[held->client])))
      fail(held->label + " is shown, though its own client has forced the lock open", eye::shown);
}

task* simulation::newest_without_lease(task const& like) const {
  task* newest = nullptr;
  for (task* other : holders_)
    if (!other->ended && !other->link && other->client == like.client && other->owner == like.owner &&
        other->key == like.key && other->mode == like.mode && (!newest || other->hold > newest->hold))
      newest = other;
  return newest;
}

// It names no hold, and ends the newest that no lease shows.
void simulation::unlock(task const& like, dice& chances) {
  task& call = made(task::type::release, like.client, like.owner, like.key);
  call.mode = like.mode;
  call.direct = chances.one_in(3);
  if (task* const newest = newest_without_lease(like)) {
    newest->ended = true;
    ended_by_[&call] = newest;
  } else {
    in_vain_.insert(&call);
  }
  if (is_planted(planted_fault::trick::unlocks_leases)) call.hold = like.hold;
  start(call);
}

}  // namespace latchkey::simulation
