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
  server_.loading = loading_until_ > now_;
  server_.read_only = read_only_until_ > now_;
  server_.full = full_until_ > now_;
  server_.busy = busy_until_ > now_;
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
      me.paused_until = std::max(me.paused_until, now_ + lasts);
      return trouble(client, lasts);
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

// A client vanishes in the middle of everything, and another one with another id comes. The server hears of it, or, if
// its machine is gone, never does.
void simulation::crash(std::size_t client, dice& chances) {
  constexpr std::size_t most_clients = 14;
  if (nodes_.size() >= most_clients) return;
  node& me = *nodes_[client];
  bool const machine = chances.one_in(2);
  tell([&] { return me.id + (machine ? "'s machine is gone" : " crashes"); });
  me.gone = true;
  network_.abandon(client, machine, now_);
  for (task* one : open_)
    if (one->client == client) {
      ++one->completions;
      if (kind_.used_as == simulated_kind::use::latch) lock_of(one->key).count.uncertain += lowers(*one);
    }
  std::erase_if(open_, [&](task const* one) { return one->client == client; });
  for (task* one : holders_)
    if (one->client == client) one->ended = true;
  add_client();
  nodes_.back()->troubled_until = nodes_[client]->troubled_until;
  tell([&] { return nodes_.back()->id + " comes"; });
}

bool simulation::of_gone(std::string const& field) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](auto const& one) { return one->gone && kind_.belongs(field, one->id); });
}

void simulation::befall_server(move const& one, dice& chances) {
  moment const lasts = ms(chances.between(1, chances.one_in(2) ? 100 : 4'000));
  bool const timed =
      one.what != deed::flush_scripts && one.what != deed::lose_message && one.what != deed::double_message;
  tell([&] { return "the server: " + std::string(name_of(one.what)) + (timed ? for_so_long(lasts) : ""); });
  switch (one.what) {
    case deed::refuse_connections: refused_until_ = now_ + lasts; break;
    case deed::stall_server: stalled_until_ = now_ + lasts; break;
    case deed::load: loading_until_ = now_ + lasts; break;
    case deed::refuse_writes: read_only_until_ = now_ + lasts; break;
    case deed::fill_memory: full_until_ = now_ + lasts; break;
    case deed::run_long_script: busy_until_ = now_ + lasts; break;
    case deed::flush_scripts: server_.flush_scripts(); return;
    case deed::lose_message: ++server_.lose_messages; break;
    case deed::double_message: ++server_.double_messages; return;
    case deed::restart:
    case deed::restart_empty:
      observe(nobody);
      server_.restart(one.what == deed::restart);
      refused_until_ = now_ + lasts;
      if (one.what == deed::restart_empty)
        for (auto& lock : locks_) {
          taken_away(lock);
          stock_again(lock);
        }
      break;
    default: return;
  }
  trouble_all(lasts);
}

// The lock ends without its holder being told, and nobody else is.
void simulation::taken_away(lock_state& lock) {
  observe(somebody);
  lock.removed = now_;
  trouble_all(0);
}

void simulation::intrude(move const& one, dice& chances) {
  lock_state& lock = locks_[chances.one_in(4) ? 1 : 0];
  observe(nobody);
  auto const lease = static_cast<std::int64_t>(100 + chances.below(5'000));
  tell([&] { return std::string(name_of(one.what)) + " " + lock.name; });
  if (kind_.used_as != simulated_kind::use::holds && one.what != deed::remove_key) {
    if (one.what != deed::stranger_forces) stranger_counts(lock, one.what == deed::stranger_takes);
    return observe(somebody);
  }
  switch (one.what) {
    case deed::stranger_takes:  // what he has he does not take again: that might shorten it without a word
      if (kind_.look(server_.data, lock.name, stranger_field).count == 0) stranger(detail::ask::acquire, lock, lease);
      break;
    case deed::stranger_releases: stranger(detail::ask::release, lock, 0); break;
    case deed::stranger_forces:
      stranger(detail::ask::force_unlock, lock, 0);
      lock.removed = now_;
      break;
    default: {
      std::vector<std::string> const words = {"DEL", lock.name};
      server_.execute(words);
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
  return run_script(kind_.which.script_for(what), asked);
}

reply simulation::run_script(detail::script const& text, detail::item const& asked) {
  detail::words keys, arguments;
  kind_.which.add_keys(asked, keys);
  kind_.which.add_arguments(asked, arguments);
  std::vector<std::string> words = {"EVAL", std::string(text.text()), std::to_string(keys.size())};
  for (auto const& list : {keys.view(), arguments.view()}) words.insert(words.end(), list.begin(), list.end());
  reply const said = server_.execute(words);
  tell([&] { return "    " + words_for(words) + " -> " + brief(said); });
  return said;
}

void simulation::stranger_gives(lock_state const& lock, std::string const& id) {
  auto const what = static_cast<unsigned char>(detail::permit_command::try_release);
  std::string const field = kind_.which.field("dddddddd", ++last_owner_, 0);
  run_script(kind_.which.command_script(what),
             {.what = detail::ask::command, .name = lock.name, .field = field, .command = what, .argument = id});
}

// Another process takes a permit or gives one back; or it counts a latch down, or sets it.
void simulation::stranger_counts(lock_state& lock, bool takes, bool more) {
  using use = simulated_kind::use;
  bool const latch = kind_.used_as == use::latch, ids = kind_.used_as == use::ids;
  if (!latch && !takes && (ids || (lock.strangers == 0 && !more))) return;  // permits with leases end by themselves
  std::string const field = kind_.which.field("dddddddd", ++last_owner_, 0);
  detail::item asked{.what = detail::ask::command, .name = lock.name, .field = field};
  std::int64_t const before = kind_.stock(server_.data, lock.name);
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
  run_script(commands ? kind_.which.command_script(asked.command) : kind_.which.script_for(asked.what), asked);
  std::int64_t const change = kind_.stock(server_.data, lock.name) - before;
  if (kind_.used_as == use::number && !more) lock.strangers -= change;
  if (!latch || change < 0) lock.count.base += change;
}

}  // namespace latchkey::simulation
