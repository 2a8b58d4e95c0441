#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

void simulation::check() {
  std::erase_if(holders_, [](task const* one) { return one->ended; });
  look_at_locks();
  if (kind_.used_as != simulated_kind::use::holds) check_stock();
  if (kind_.used_as != simulated_kind::use::number) check_beliefs();
  check_limits();
  check_shown();
  if (!ending_) check_wake_ups();
  check_counts();
  if (kind_.joint()) check_joints();
  if (kind_.which.rules().own_channel) check_line();
}

// Nobody believes to hold what somebody else believes to hold, and the server remembers what anybody believes.
void simulation::check_beliefs() {
  struct belief {
    task const* of;
    std::int64_t count;
  };
  std::vector<belief> all;
  for (task const* one : holders_) {
    node const& me = *nodes_[one->client];
    if (!one->trusted(client_time(me) + nanoseconds(lost_rate_)) || excused(*one)) continue;
    auto const same = std::find_if(all.begin(), all.end(), [&](belief const& other) {
      return other.of->client == one->client && other.of->owner == one->owner && other.of->key == one->key &&
             other.of->mode == one->mode;
    });
    std::int64_t believed = 1;
    if (same != all.end())
      believed = ++same->count;
    else
      all.push_back({one, 1});
    auto const there = kind_.look(at(me).at.data, one->key, field_of(*one));
    // A copy that came late has its own idea of the count. The next request says again what it should be.
    auto const& present = lock_of(one->key).present;
    bool const counted_late = std::any_of(present.begin(), present.end(), [&](tenure const& other) {
      return other.refused && other.field == field_of(*one);
    });
    bool const lags = settings_.local_turns && kind_.has_turns(*one);
    if (there.count < (counted_late || lags ? 1 : believed))
      fail("the server has forgotten the hold of " + one->label, eye::shown);
    if (there.ends == keyspace::forever) continue;
    if (one->shown.until() == detail::never) fail("the server will forget the hold of " + one->label, eye::shown);
    moment const forgets = at(me).when_gone(there.ends);
    if (forgets + lost_rate_ < true_time(me, one->shown.until()))
      fail("the server forgets the hold of " + one->label + " before its owner does", eye::shown);
  }
  for (auto const& one : all)
    for (auto const& other : all) {
      if (&one >= &other || one.of->key != other.of->key) continue;
      if (one.of->client == other.of->client && one.of->owner == other.of->owner) continue;
      if (!kind_.may_share(*one.of, *other.of)) fail("two valid holders: " + one.of->label + " and " + other.of->label);
    }
}

// While the lock is free, somebody who waits for it is on his way. A fault excuses for a while.
void simulation::check_wake_ups() {
  observe(nobody);
  auto const& rules = kind_.which.rules();
  bool const looks = rules.own_channel;                              // waiters look for themselves now and then
  bool const claims = kind_.used_as == simulated_kind::use::number;  // a claim ends without a word
  moment const looks_after = ms(rules.polls ? rules.poll_most : looks || claims ? 1'000 : 0);
  moment const patience = 12 * network_.longest_way() + ms(60) + looks_after;
  for (task const* one : open_) {
    if (one->what != task::type::acquire || one->once) continue;
    node const& me = *nodes_[one->client];
    lock_state const& lock = lock_of(one->key);
    bool const own = !lock.past.empty() && kind_.belongs(lock.past.back().field, me.id);
    if (!kind_.free(data_of(lock), lock.name, field_of(*one), *one) || behind_another(*one)) {
      free_since_.erase(one);
      continue;
    }
    moment const free = free_since_.emplace(one, now_).first->second;
    // Others were told of another end; who looks for himself sleeps no longer than that.
    if (!own && !looks && now_ <= lock.told_until + patience) continue;
    moment const left = own ? lock.past.back().to : 0;
    moment const since = std::max({free, left, started_.at(one), me.troubled_until, me.borrower_back});
    if (now_ - since <= patience) continue;
    // A connection that has gone silent is noticed when it is used, or by a ping.
    if (network_.deceives(one->client))
      trouble(one->client, 0);
    else
      fail("nobody is on the way to " + lock.name + ", which is free and which " + one->label + " waits for");
  }
}

// In a client nobody tries past a waiter whom he would keep out.
bool simulation::behind_another(task const& one) const {
  using use = simulated_kind::use;
  bool const in_turn = kind_.used_as == use::number || kind_.used_as == use::ids;
  if (kind_.modes == 1 && !in_turn) return false;
  return std::any_of(open_.begin(), open_.end(), [&](task const* other) {
    return other->client == one.client && other->key == one.key && other->queued && other->ticket < one.ticket &&
           (in_turn || !kind_.may_share(one, *other));
  });
}

// It has nothing more to say.
bool simulation::at_ease(node const& me) const {
  return !me.gone && !me.turn_posted && me.loans.empty() && !me.closing && me.paused_until <= now_ &&
         me.machine.quiet() && me.machine.wake_at() > client_time(me);
}

// What a client that has nothing more to say believes is what the server has.
void simulation::check_counts() {
  if (kind_.used_as == simulated_kind::use::ids) give_back_again();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    node const& me = *nodes_[i];
    if (!at_ease(me)) continue;
    // A permit that its holder counts as ended stays for a moment: its lease began when the server ran the request.
    auto const left_to_lease = [&](lock_state const& lock, std::int64_t ends, std::string const& field) {
      if (!kind_.which.rules().by_id || ends == keyspace::forever ||
          at(lock).when_gone(ends) > now_ + ms(settings_.timeout.count()))
        return false;
      return std::any_of(tasks_.begin(), tasks_.end(), [&](auto const& given) {
        return given->client == i && given->key == lock.name && given->granted() &&
               given->shown.until() <= client_time(me) && field_of(*given) == field;
      });
    };
    // The count that a turn has left behind is soon told.
    bool const tells_soon =
        kind_.which.rules().turns && me.machine.wake_at() <= after(client_time(me), milliseconds(6));
    for (auto const& lock : locks_) {
      if (lock.removed >= 0) continue;
      for (tenure const& one : lock.present) {
        if (one.refused || !kind_.belongs(one.field, me.id)) continue;
        bool const owned = std::any_of(holders_.begin(), holders_.end(), [&](task const* held) {
          return held->client == i && held->key == lock.name && field_of(*held) == one.field;
        });
        bool const asks = std::any_of(open_.begin(), open_.end(), [&](task const* open) {
          return open->client == i && open->key == lock.name &&
                 (field_of(*open) == one.field || (open->argument && *open->argument == one.field));
        });
        auto const there = kind_.look(data_of(lock), lock.name, one.field);
        if (!owned && !asks && there.count > 0 && !left_to_lease(lock, there.ends, one.field))
          fail("nobody owns the hold of " + one.field + " on " + lock.name);
        std::int64_t believed = 0;
        bool waiting = false;
        for (task const* held : holders_)
          if (held->client == i && held->key == lock.name && field_of(*held) == one.field)
            believed += held->trusted(client_time(me));
        for (task const* open : open_) waiting = waiting || (open->client == i && open->key == lock.name);
        auto const count = there.count;
        if (kind_.used_as == simulated_kind::use::holds && count != 0 && !waiting && !tells_soon && count != believed)
          fail("the server counts " + std::to_string(count) + " holds of " + one.field + " on " + lock.name +
               ", its owner " + std::to_string(believed));
      }
    }
  }
}

// Of a client that has nothing more to say only those who wait stand in a queue of the server.
void simulation::check_line() {
  for (auto const& me : nodes_) {
    if (!at_ease(*me)) continue;
    for (auto const& lock : locks_)
      for (auto const& one : lock.line) {
        if (!kind_.belongs(one.field, me->id) || lock.stays.contains(one.field)) continue;
        bool const waits = std::any_of(open_.begin(), open_.end(), [&](task const* open) {
          return open->key == lock.name && field_of(*open) == one.field;
        });
        if (!waits) fail(one.field + " stands in the queue of " + lock.name + ", and nobody waits");
      }
  }
}

}  // namespace latchkey::simulation
