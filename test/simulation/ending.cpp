#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

// Enough for five callers who ask again and again for the 30 s of a lease that a dead machine has left.
constexpr unsigned most_steps = 60'000;
constexpr moment most_time = ms(3'600'000);

}  // namespace

// All faults end, all holds are released, and everything comes to rest. Then nothing is left, and nothing more happens.
void simulation::finish() {
  tell([] { return std::string("all faults end; whoever holds the lock releases it"); });
  ending_ = true;
  for (auto& one : sites_) {
    one->loading_until = one->read_only_until = one->full_until = one->busy_until = one->refused_until =
        one->unkilled_until = one->sick_until = 0;
    one->at.lose_messages = one->at.double_messages = 0;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i]->gone) network_.abandon(i, false, now_);  // the server gives up those of machines that are gone
  set_modes();
  for (auto& lock : locks_) {
    observe(nobody);
    if (kind_.used_as != simulated_kind::use::holds) {
      while (lock.strangers > 0) stranger_counts(lock, false);
      continue;
    }
    if (kind_.which.rules().own_channel) stranger(detail::ask::leave, lock, 0);
    stranger(detail::ask::release, lock, 0);
    observe(somebody);
  }
  moment const began = now_;
  for (unsigned i = 0;; ++i) {
    if (i > most_steps || now_ - began > most_time) fail("does not come to rest:" + why_busy());
    release_all();
    if (at_rest()) break;
    // Unlock names no hold: it may have ended one that the round had still before it, and not the one that it was for.
    if (step(false) || (!kind_.joint() && any_unreleased())) continue;
    if (all_move_at() <= now_) fail("nothing will ever happen, and it is not at rest:" + why_busy());
    now_ = all_move_at();
    set_server_clocks();
  }
  outlast_refused();
  check_rest();
  // Links that died while nobody looked are found and replaced. Then it looks now and then whether the server is there.
  resting_ = true;
  moment const round = ms(std::max<std::int64_t>(2 * settings_.ping_interval.count(), 2'000) +
                          2 * settings_.timeout.count() + settings_.connect_timeout.count());
  for (moment const until = now_ + round; now_ < until && step(false);) {
  }
  unsigned const woken = wakes_;
  std::uint64_t const said = commands();
  moment const until = now_ + round;
  while (now_ < until && step(false)) {
  }
  auto const pings = settings_.ping_interval.count() == 0 ? 0 : round / ms(settings_.ping_interval.count()) + 1;
  auto const most = nodes_.size() * (10 + 6 * static_cast<std::size_t>(pings));
  if (wakes_ - woken > most || commands() - said > most) fail("at rest, and yet it does not sleep");
  check_rest();
}

// What the server would not let go ends with its lease, and whom it would not take out of a queue with his time there.
void simulation::outlast_refused() {
  for (auto const& lock : locks_)
    for (tenure const& one : lock.present) {
      auto const there = kind_.look(data_of(lock), lock.name, one.field);
      if (!one.refused && !of_gone(one.field) && !of_closed(one.field)) continue;
      if (there.ends != keyspace::forever) now_ = std::max(now_, at(lock).when_gone(there.ends));
      // A key may last longer than what it says of a hold.
      auto const* const key = data_of(lock).find(lock.name);
      if (key && key->ends != keyspace::forever) now_ = std::max(now_, at(lock).when_gone(key->ends));
    }
  for (auto const& lock : locks_)
    for (auto const& one : lock.line)
      if (lock.stays.contains(one.field) || of_gone(one.field)) now_ = std::max(now_, at(lock).when_gone(one.dead_at));
  set_server_clocks();
  observe(nobody);
  for (auto& lock : locks_) {
    if (lock.line.empty()) continue;
    stranger(detail::ask::acquire, lock, 1'000);  // who looks for a free lock takes the dead out of its queue
    stranger(detail::ask::release, lock, 0);
    observe(somebody);
  }
}

// What a discarded connection has left behind took it, and nobody has it or asks for it.
bool simulation::came_late(lock_state const& lock, std::string const& field) const {
  auto const concerned = [&](task const* one) {
    bool const names = one->argument && *one->argument == field;
    return !one->ended && one->key == lock.name && (field_of(*one) == field || names);
  };
  return lock.stays.contains(field) && std::none_of(holders_.begin(), holders_.end(), concerned) &&
         std::none_of(open_.begin(), open_.end(), concerned);
}

bool simulation::any_unreleased() const {
  return std::any_of(holders_.begin(), holders_.end(), [](task const* one) { return !one->ended; });
}

void simulation::release_all() {
  dice chances(mix(options_.seed, 19));
  for (auto const& one : joints_)
    if (one->granted && !one->hold.ended() && !one->gone) end_joint(*one, one->hold.lost(), chances);
  auto const held = kind_.joint() ? std::vector<task*>{} : holders_;
  using use = simulated_kind::use;
  for (auto& lock : locks_)  // permits that nobody has any more, as far as anybody knows
    while (kind_.used_as == use::number && lock.count.base - lock.count.down < 2 &&
           kind_.stock(data_of(lock), lock.name) < 2)
      stranger_counts(lock, false, true);
  // What a client that is gone or closed had without a lease is given back by who knows its id, and what came late as
  // well.
  for (auto& lock : locks_)
    for (tenure const& one : lock.present) {
      bool const left = of_gone(one.field) || of_closed(one.field) || came_late(lock, one.field);
      if (kind_.used_as != use::ids || !left) continue;
      if (kind_.look(data_of(lock), lock.name, one.field).ends == keyspace::forever) stranger_gives(lock, one.field);
    }
  for (auto& lock : locks_)
    while (kind_.used_as == use::latch && kind_.stock(data_of(lock), lock.name) > 0) stranger_counts(lock, false);
  for (task* one : held)
    if (!one->ended && kind_.used_as != use::holds && !(kind_.used_as == use::ids && one->keeps))
      give_permits(*one, false, chances);
    else if (!one->ended)
      end_hold(*one, one->shown.lost || nodes_[one->client]->machine.closed(), chances);
  greedy_.clear();
}

std::uint64_t simulation::commands() const {
  std::uint64_t made = 0;
  for (auto const& one : sites_) made += one->at.commands;
  return made;
}

// Those of a connection whose client hears nothing end with it, when TCP gives it up.
std::size_t simulation::subscriptions() {
  std::size_t made = 0;
  for (auto const& one : sites_)
    made += one->at.subscriptions([&](server::handle which) {
      wire const* const on = network_.of_server(which);
      return !on || !on->silent;
    });
  return made;
}

// Pauses outlast the faults: bytes that wait for the end of one come no earlier.
moment simulation::all_move_at() const {
  moment last = 0;
  for (auto const& one : nodes_) last = std::max({last, one->paused_until, one->borrower_back});
  for (auto const& one : sites_) last = std::max(last, one->stalled_until);
  return last;
}

bool simulation::of_closed(std::string const& field) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](auto const& one) { return one->machine.closed() && kind_.belongs(field, one->id); });
}

bool simulation::at_rest() {
  if (std::any_of(joints_.begin(), joints_.end(), [](auto const& one) { return one->completions == 0; })) return false;
  if (!open_.empty() || subscriptions() > 0 || all_move_at() > now_) return false;
  for (auto const& one : nodes_) {
    if ((one->gone || at(*one).unkilled) && network_.says_more(one->number)) return false;
    if (one->gone) continue;
    stats s;
    one->machine.snapshot(s);
    if (s.held + s.waiting + s.subscriptions + s.in_doubt > 0 || !one->machine.quiet() || !one->at_end() ||
        !one->loans.empty())
      return false;
  }
  return true;
}

std::string simulation::why_busy() {
  std::string made;
  for (task const* one : open_) made += " " + one->label + " is not done;";
  for (auto const& one : nodes_) {
    if (one->gone) continue;
    stats s;
    one->machine.snapshot(s);
    made += " " + one->id + " held " + std::to_string(s.held) + " waiting " + std::to_string(s.waiting) +
            " subscriptions " + std::to_string(s.subscriptions) + " in_doubt " + std::to_string(s.in_doubt) +
            (one->machine.quiet() ? "" : " not quiet") + (one->machine.idle() ? ";" : " not idle;");
  }
  return made + " server subscriptions " + std::to_string(subscriptions());
}

void simulation::check_rest() const {
  for (auto const& one : tasks_)
    if (one->completions != 1) fail(one->label + " was not completed exactly once");
  for (auto const& one : joints_)
    if (one->completions != 1) fail(one->label + " was not completed exactly once");
  for (auto const& one : nodes_)
    if (!one->gone && !one->at_end()) fail("an owner state, a queue entry or a listener of " + one->id + " is left");
  for (auto const& one : sites_)
    for (auto const& key : one->at.data.keys())
      if (!kind_.may_stay(key)) fail("the key " + key + " is left");
}

}  // namespace latchkey::simulation
