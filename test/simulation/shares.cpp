#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

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
