#include <simulation/simulation.hpp>

#include <wire/commands.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

constexpr char const* stranger_field = "stranger:1";

std::string for_so_long(moment length) { return " for " + std::to_string(length / 1'000'000) + " ms"; }

}  // namespace

// For so long, and then until it has recovered, a client may be slow to hear that a lock is free.
void simulation::trouble(std::size_t client, moment length) {
  moment& until = nodes_[client]->troubled_until;
  until = std::max(until, now_ + length + recovery_);
}

void simulation::trouble_all(moment length) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) trouble(i, length);
}

void simulation::set_modes() {
  for (auto& one : sites_) {
    one->at.loading = one->loading_until > now_;
    one->at.read_only = one->read_only_until > now_;
    one->at.full = one->full_until > now_;
    one->at.busy = one->busy_until > now_;
    one->at.refuses_kill = one->unkilled_until > now_;
    if (one->sick_until <= now_) one->at.sick = server::sickness::none;
    one->unkilled = one->unkilled || one->at.refuses_kill;
  }
}

void simulation::befall(move const& one) {
  dice chances = one.chances();
  std::size_t const client = any_client(chances);
  node& me = *nodes_[client];
  auto const length = [&](std::int64_t most) {
    return ms(chances.between(1, chances.one_in(2) ? most / 20 + 1 : most));
  };
  switch (one.what) {
    case deed::cut:
    case deed::silence:
    case deed::hold_up: {
      auto const as = static_cast<role>(chances.below(3));
      wire* const on = network_.find(client, as);
      if (!on || on->broken || on->silent) return;
      std::string const which = me.id + "'s " + name_of(as) + " connection ";
      if (one.what == deed::cut) {
        tell([&] { return which + "is cut"; });
        network_.cut(*on, chances, now_);
        return trouble(client, 0);
      }
      moment const lasts = length(5'000);
      if (one.what == deed::silence) {
        tell([&] { return which + "goes silent; what is sent arrives" + for_so_long(lasts) + " late"; });
        network_.silence(*on, now_ + lasts);
      } else {
        tell([&] { return which + "is held up" + for_so_long(lasts); });
        network_.hold_up(*on, lasts);
      }
      return trouble(client, lasts);
    }
    case deed::pause_client: {
      moment const lasts = length(2 * settings_.lock_watchdog_timeout.count());
      tell([&] { return me.id + " is paused" + for_so_long(lasts); });
      for (auto const& other : nodes_) {
        if (other->process != me.process) continue;
        other->paused_until = std::max(other->paused_until, now_ + lasts);
        trouble(other->number, lasts);
      }
      return;
    }
    case deed::crash_client: return crash(client, chances);
    case deed::stop_borrower: {
      moment const lasts = length(2 * settings_.timeout.count());
      tell([&] { return "blocking callers of " + me.id + " are not scheduled" + for_so_long(lasts); });
      me.borrower_back = std::max(me.borrower_back, now_ + lasts);
      return trouble(client, lasts);
    }
    case deed::stranger_takes:
    case deed::stranger_releases:
    case deed::stranger_forces:
    case deed::remove_key: return intrude(one, chances);
    default: return befall_server(one, chances);
  }
}

// A process vanishes in the middle of everything, and another one with other ids comes. The servers hear of it, or, if
// its machine is gone, never do.
void simulation::crash(std::size_t client, dice& chances) {
  constexpr std::size_t most_clients = 14;
  if (nodes_.size() + sites_.size() > most_clients + 1) return;
  bool const machine = chances.one_in(2);
  std::size_t const process = nodes_[client]->process;
  moment troubled = 0;
  for (auto const& one : nodes_) {
    if (one->process != process) continue;
    tell([&] { return one->id + (machine ? "'s machine is gone" : " crashes"); });
    troubled = one->troubled_until;
    vanish(one->number, machine);
  }
  vanish_joints(process);
  add_process();
  for (auto const& one : nodes_) {
    if (one->process != nodes_.back()->process) continue;
    one->troubled_until = troubled;
    tell([&] { return one->id + " comes"; });
  }
}

void simulation::vanish(std::size_t client, bool unheard) {
  nodes_[client]->gone = true;
  network_.abandon(client, unheard, now_);
  for (task* one : open_)
    if (one->client == client) {
      ++one->completions;
      limits_.erase(one);
      if (kind_.used_as == simulated_kind::use::latch) lock_of(one->key).count.uncertain += lowers(*one);
    }
  std::erase_if(open_, [&](task const* one) { return one->client == client; });
  for (task* one : holders_)
    if (one->client == client) one->ended = true;
}

bool simulation::of_gone(std::string const& field) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](auto const& one) { return one->gone && kind_.belongs(field, one->id); });
}

void simulation::befall_server(move const& one, dice& chances) {
  moment const lasts = ms(chances.between(1, chances.one_in(2) ? 100 : 4'000));
  std::size_t const which = sites_.size() > 1 ? chances.below(sites_.size()) : 0;
  site& place = *sites_[which];
  bool const timed =
      one.what != deed::flush_scripts && one.what != deed::lose_message && one.what != deed::double_message;
  tell([&] {
    return (sites_.size() > 1 ? "server " + std::to_string(which) : "the server") + ": " +
           std::string(name_of(one.what)) + (timed ? for_so_long(lasts) : "");
  });
  switch (one.what) {
    case deed::refuse_connections: place.refused_until = now_ + lasts; break;
    case deed::stall_server: place.stalled_until = now_ + lasts; break;
    case deed::load: place.loading_until = now_ + lasts; break;
    case deed::refuse_writes: place.read_only_until = now_ + lasts; break;
    case deed::fill_memory: place.full_until = now_ + lasts; break;
    case deed::run_long_script: place.busy_until = now_ + lasts; break;
    case deed::refuse_kill: place.unkilled_until = now_ + 20 * lasts; break;
    case deed::sicken: return sicken(place, chances);
    case deed::flush_scripts: place.at.flush_scripts(); return;
    case deed::lose_message: ++place.at.lose_messages; break;
    case deed::double_message: ++place.at.double_messages; return;
    case deed::restart:
    case deed::restart_empty:
      observe(nobody);
      place.at.restart(one.what == deed::restart);
      place.refused_until = now_ + lasts;
      if (one.what == deed::restart_empty)
        for (auto& lock : locks_) {
          if (&at(lock) != &place) continue;
          taken_away(lock);
          stock_again(lock);
        }
      break;
    default: return;
  }
  trouble_all(lasts);
}

// For minutes it answers, and does nothing, or it answers no more. Callers do not ask as often as else.
void simulation::sicken(site& place, dice& chances) {
  using sickness = server::sickness;
  constexpr sickness sorts[] = {sickness::says_a_word, sickness::says_it_later, sickness::turns_away,
                                sickness::hangs_up, sickness::drops_listeners};
  constexpr char const* words[] = {"LOADING Redis is loading the dataset in memory",
                                   "BUSY Redis is busy running a script",
                                   "READONLY You can't write against a read only replica.",
                                   "OOM command not allowed when used memory > 'maxmemory'.",
                                   "NOAUTH Authentication required.",
                                   "MISCONF Errors writing to the AOF file",
                                   "MASTERDOWN Link with MASTER is down",
                                   "CLUSTERDOWN The cluster is down",
                                   "NOPERM this user has no permissions to run this command"};
  if (place.sick_until > now_) return;
  moment const lasts = ms(chances.one_in(4) ? chances.between(20'000, 180'000) : chances.between(1'000, 20'000));
  place.at.sick = chances.of(sorts);
  place.at.word = chances.of(words);
  // One that has not even the right to KILL cannot fence its late copies (docs/safety.md, section 6), and a permit
  // whose release is refused for good stays taken.
  bool const no_right = place.at.word.starts_with("NOPERM");
  if (kind_.used_as != simulated_kind::use::holds && (no_right || place.at.word.starts_with("NOAUTH")))
    place.at.word = words[0];
  else if (no_right)
    place.unkilled = true;
  place.sick_until = now_ + lasts;
  tell([&] { return "  it " + std::string(name_of(place.at.sick)) + for_so_long(lasts) + ": " + place.at.word; });
  trouble_all(lasts);
}

bool simulation::any_sick() const {
  return std::any_of(sites_.begin(), sites_.end(), [&](auto const& one) { return one->sick_until > now_; });
}

// The lock ends without its holder being told, and nobody else is.
void simulation::taken_away(lock_state& lock) {
  observe(somebody);
  lock.removed = now_;
  trouble_all(0);
}

// Where CLIENT KILL is refused, what a discarded connection has left behind may undo what came later: as if a stranger
// had done it (docs/safety.md, section 6).
void simulation::excuse_late(std::size_t client, words_view words) {
  for (auto& lock : locks_) {
    if (std::find(words.begin(), words.end(), lock.name) == words.end()) continue;
    lock.removed = now_;
    lock.refused = true;
    for (tenure& one : lock.present) one.refused = one.refused || kind_.belongs(one.field, nodes_[client]->id);
    trouble_all(0);
  }
}

// Before the next look at the server: what it has counted may have been counted before, or may be counted again; and
// whom it has put into a queue nobody takes out.
void simulation::expect_late(std::size_t client, words_view words) {
  for (auto& lock : locks_) {
    if (std::find(words.begin(), words.end(), lock.name) == words.end()) continue;
    for (auto const& word : words)
      if (kind_.belongs(word, nodes_[client]->id)) lock.stays.insert(word);
    std::int64_t const change = kind_.stock(data_of(lock), lock.name) - lock.stock;
    (change < 0 ? lock.count.down : lock.count.up) += std::abs(change);
  }
}

void simulation::intrude(move const& one, dice& chances) {
  lock_state& lock = any_lock(chances);
  observe(nobody);
  auto const lease = static_cast<std::int64_t>(100 + chances.below(5'000));
  tell([&] { return std::string(name_of(one.what)) + " " + lock.name; });
  if (kind_.used_as != simulated_kind::use::holds && one.what != deed::remove_key) {
    if (one.what != deed::stranger_forces) stranger_counts(lock, one.what == deed::stranger_takes);
    return observe(somebody);
  }
  switch (one.what) {
    case deed::stranger_takes:  // what he has he does not take again: that might shorten it without a word
      if (kind_.look(data_of(lock), lock.name, stranger_field).count == 0) stranger(detail::ask::acquire, lock, lease);
      break;
    case deed::stranger_releases: stranger(detail::ask::release, lock, 0); break;
    case deed::stranger_forces:
      stranger(detail::ask::force_unlock, lock, 0);
      lock.removed = now_;
      break;
    default: {
      std::vector<std::string> const words = {"DEL", lock.name};
      at(lock).at.execute(words);
      taken_away(lock);
      stock_again(lock);
    }
  }
  observe(somebody);
}

// Another process, which uses the same scripts.
reply simulation::stranger(detail::ask what, lock_state const& lock, std::int64_t lease) {
  detail::item const asked{.what = what,
                           .name = lock.name,
                           .field = stranger_field,
                           .target = what == detail::ask::acquire ? 1 : 0,
                           .lease = lease,
                           .line_time = lease,
                           .enters_line = lease % 2 == 0};
  return run_script(lock, kind_.which.script_for(what), asked);
}

reply simulation::run_script(lock_state const& on, detail::script const& text, detail::item const& asked) {
  detail::words keys, arguments;
  kind_.which.add_keys(asked, keys);
  kind_.which.add_arguments(asked, arguments);
  if (text.publishes()) arguments.add(detail::publisher(false));
  std::vector<std::string> words = {"EVAL", std::string(text.text()), std::to_string(keys.size())};
  for (auto const& list : {keys.view(), arguments.view()}) words.insert(words.end(), list.begin(), list.end());
  reply const said = at(on).at.execute(words);
  tell([&] { return "    " + words_for(words) + " -> " + brief(said); });
  return said;
}

void simulation::stranger_gives(lock_state const& lock, std::string const& id) {
  auto const what = static_cast<unsigned char>(detail::permit_command::try_release);
  std::string const field = kind_.which.field("dddddddd", ++last_owner_, 0);
  run_script(lock, kind_.which.command_script(what),
             {.what = detail::ask::command, .name = lock.name, .field = field, .command = what, .argument = id});
}

// Another process takes a permit or gives one back; or it counts a latch down, or sets it.
void simulation::stranger_counts(lock_state& lock, bool takes, bool more) {
  using use = simulated_kind::use;
  bool const latch = kind_.used_as == use::latch, ids = kind_.used_as == use::ids;
  if (!latch && !takes && (ids || (lock.strangers == 0 && !more))) return;  // permits with leases end by themselves
  std::string const field = kind_.which.field("dddddddd", ++last_owner_, 0);
  detail::item asked{.what = detail::ask::command, .name = lock.name, .field = field};
  std::int64_t const before = kind_.stock(data_of(lock), lock.name);
  if (latch) {
    using detail::latch_command;
    asked.command = static_cast<unsigned char>(takes ? latch_command::try_set : latch_command::count_down);
  } else if (takes) {
    asked.what = detail::ask::acquire;
    asked.lease = ids ? 3'000 : 0;
  } else {
    asked.command = static_cast<unsigned char>(detail::semaphore_command::release);
  }
  bool const commands = asked.what == detail::ask::command;
  run_script(lock, commands ? kind_.which.command_script(asked.command) : kind_.which.script_for(asked.what), asked);
  std::int64_t const change = kind_.stock(data_of(lock), lock.name) - before;
  if (kind_.used_as == use::number && !more) lock.strangers -= change;
  if (!latch || change < 0) lock.count.base += change;
}

}  // namespace latchkey::simulation
