#include <simulation/simulation.hpp>

#include <algorithm>
#include <cmath>

namespace latchkey::simulation {

namespace {

constexpr milliseconds grace{50};  // past the end of a wait, for the answer to a first try

}  // namespace

// A call ends when its wait does; one without a wait has a budget. Members of a joint call end with that.
void simulation::limit(task const& one) {
  if (one.deadline == detail::never || part_of_.contains(&one)) return;
  moment const end = true_time(*nodes_[one.client], detail::after(one.deadline, grace));
  limits_[&one] = end;
  next_limit_ = std::min(next_limit_, end);
}

// A process that stands still, or a thread that is not scheduled, hears of the end as soon as it goes on.
moment simulation::patience_of(task const& one, moment end) const {
  node const& me = *nodes_[one.client];
  return std::max({end, me.paused_until + ms(1), one.direct ? me.borrower_back + ms(1) : 0});
}

void simulation::check_limit(task const& done) {
  auto const found = limits_.find(&done);
  if (found == limits_.end()) return;
  moment const end = patience_of(done, found->second);
  limits_.erase(found);
  if (now_ > end) fail(done.label + " ends late, for it had time until" + shown_time(end), eye::late);
}

void simulation::check_limits() {
  if (now_ <= next_limit_) return;
  next_limit_ = endless;
  for (auto const& [one, limit] : limits_) {
    moment const end = patience_of(*one, limit);
    if (now_ > end) fail(one->label + " goes on, though it had time until" + shown_time(end), eye::late);
    next_limit_ = std::min(next_limit_, end);
  }
}

moment simulation::limit_of(joint_call const& one) const {
  if (one.deadline == detail::never) return endless;
  node const& me = *nodes_[client_of(one, 0)];
  return std::max(true_time(me, detail::after(one.deadline, grace)), me.paused_until + ms(1));
}

// What a client may cost in every state of its server. Each of three connections is made anew after a pause, which
// soon is at least half of `retry_delay`, or after it was good for so long; a handshake has less than ten commands.
void simulation::set_rates() {
  double const pauses = 60'000.0 / static_cast<double>(settings_.retry_delay.count());
  double const connections = 3 * 2 * pauses;
  double const commands = 10 * connections + 60'000.0 / 20;
  most_per_minute_ = {connections, commands, 1'000 * commands};
  at_once_ = {30, 400, 600'000};
}

void simulation::spends(node& me, load::sort what, std::size_t much) {
  auto const i = static_cast<std::size_t>(what);
  me.has_sent.pass(now_, most_per_minute_);
  double& level = me.has_sent.level[i];
  level += static_cast<double>(much);
  if (level <= at_once_[i]) return;
  constexpr char const* names[] = {"connections", "commands", "bytes"};
  fail(me.id + " makes too many " + names[i] + ": more than " + std::to_string(std::lround(most_per_minute_[i])) +
           " a minute",
       eye::storm);
}

// What callers ask for, and each fault, costs something.
void simulation::forgive() {
  for (auto const& one : nodes_) {
    auto& level = one->has_sent.level;
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::max(level[i] - at_once_[i] / 10, 0.0);
  }
}

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
    ended_in_[&call] = field_of(*newest);
  } else {
    in_vain_.insert(&call);
  }
  if (is_planted(planted_fault::trick::unlocks_leases)) call.hold = like.hold;
  start(call);
}

// One client has it as long as nobody else has, and it is never free.
void simulation::note_reign(lock_state& lock, std::vector<std::string> const& holders) {
  if (lock.reign.client == SIZE_MAX) return;
  auto const& id = nodes_[lock.reign.client]->id;
  bool const on = !holders.empty() && std::all_of(holders.begin(), holders.end(),
                                                  [&](auto const& field) { return kind_.belongs(field, id); });
  if (!on) lock.reign = {};
}

// Callers of one client may pass it on among themselves for so long. Then whoever waits elsewhere is told.
void simulation::check_share(task const& granted) {
  if (kind_.modes > 1 || kind_.joint()) return;
  lock_state& lock = lock_of(granted.key);
  for (task const* held : holders_)
    if (held != &granted && held->client == granted.client && held->key == granted.key && !held->ended &&
        (!held->link || held->trusted(client_time(*nodes_[held->client]))))
      return;  // it had it anyway
  for (task const* other : open_)
    if (other->what == task::type::release && other->client == granted.client && other->key == granted.key)
      return;  // and before that has run, it still has it
  auto& reign = lock.reign;
  if (reign.client != granted.client) reign = {granted.client, now_, 0, 0};
  bool const wanted = std::any_of(open_.begin(), open_.end(), [&](task const* one) {
    return one->client != granted.client && one->key == granted.key && one->what == task::type::acquire && !one->once &&
           started_.at(one) <= reign.since;
  });
  if (!wanted) return;
  ++reign.grants;
  if (reign.grants == 2) reign.second = now_;
  int const most = std::max(settings_.local_handoff.max_streak, 0) + 2;
  if (reign.grants > most)
    fail(granted.label + " is granted it, the " + std::to_string(reign.grants) +
             "th of its client in a row, while others wait",
         eye::starved);
  moment const longest = ms(settings_.local_handoff.max_time.count()) + 4 * network_.longest_way() + ms(5);
  if (reign.grants > 2 && now_ - reign.second > longest && nodes_[granted.client]->troubled_until <= reign.since)
    fail(granted.label + " is granted it, though its client has passed it on for long while others wait", eye::starved);
}

// Who was granted it drops it and takes it again before anything is sent.
void simulation::retake() {
  for (std::size_t i = 0; i < greedy_.size();) {
    task& held = *greedy_[i];
    bool const ready = held.granted() && !held.ended && awake(held.client);
    if (!ready && !held.done() && !nodes_[held.client]->gone) {
      ++i;
      continue;
    }
    greedy_.erase(greedy_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!ready || retakes_ == 0) continue;
    --retakes_;
    dice chances(mix(options_.seed, 43, steps_));
    end_hold(held, true, chances);
    task& again = made(task::type::acquire, held.client, held.owner, held.key);
    again.link = &again.shown;
    again.mode = held.mode;
    again.direct = held.direct;
    again.deadline = detail::never;
    again.line_time = settings_.fair_lock_wait_timeout;
    longest_[&again] = settings_.lock_watchdog_timeout;
    greedy_.push_back(&again);
    start(again);
  }
}

}  // namespace latchkey::simulation
