#include <simulation/simulation.hpp>

#include <wire/commands.hpp>

#include <algorithm>

namespace latchkey::simulation {

using detail::latch_command;
using detail::operation;
using detail::permit_command;
using detail::semaphore_command;
using use = simulated_kind::use;

// --- what callers do with permits and latches ---

// False: such a caller knows no such call.
bool simulation::act_on_permits(move const& one, dice& chances) {
  switch (one.what) {
    case deed::acquire:
    case deed::try_once: begin_take(chances, one.what == deed::try_once); return true;
    case deed::release:
    case deed::drop:
      if (kind_.used_as == use::latch)
        command(chances, static_cast<unsigned char>(latch_command::count_down), 1);
      else if (task* const held = any_held(chances, false))
        give_permits(*held, one.what == deed::drop, chances);
      return true;
    case deed::unlock: change_number(chances); return true;
    case deed::extend:
      if (kind_.used_as != use::ids) return true;
      if (task* const held = any_held(chances, true)) {
        if (held->keeps)
          extend(*held, chances);
        else
          update_permit(*held, chances);
      }
      return true;
    case deed::query: {
      if (kind_.used_as == use::ids) {
        bool const taken = chances.one_in(2);
        command(chances, static_cast<unsigned char>(taken ? permit_command::acquired : permit_command::available), 0);
        return true;
      }
      std::size_t const client = any_client(chances);
      if (!awake(client)) return true;
      task& asked = made(operation::type::query, client, ++last_owner_, locks_[chances.below(2)].name);
      asked.question = detail::query::value;
      asked.direct = chances.one_in(3);
      start(asked);
      return true;
    }
    case deed::force_unlock: return true;
    default: return false;
  }
}

// Every such call has an owner of its own.
void simulation::begin_take(dice& chances, bool once) {
  std::size_t const client = any_client(chances);
  std::string const& name = locks_[chances.one_in(4) ? 1 : 0].name;
  if (!awake(client)) return;
  task& one = made(operation::type::acquire, client, ++last_owner_, name);
  one.once = once;
  one.direct = chances.one_in(3);
  one.keeps = kind_.used_as == use::ids && chances.one_in(2);
  if (one.keeps) one.link = &one.shown;
  if (kind_.used_as == use::number) one.amount = chances.between(1, 2);
  if (!once)
    one.deadline = chances.one_in(2) ? detail::never
                                     : detail::after(client_time(*nodes_[client]), milliseconds(chances.below(6'000)));
  if (kind_.used_as == use::ids && !chances.one_in(4)) one.lease = milliseconds(chances.between(200, 8'000));
  longest_[&one] = one.lease;
  start(one);
}

task& simulation::begin_command(std::size_t client, std::string const& name, unsigned char what, dice& chances) {
  task& one = made(operation::type::command, client, ++last_owner_, name);
  one.command = what;
  one.amount = 0;
  one.direct = chances.one_in(3);
  return one;
}

void simulation::command(dice& chances, unsigned char what, std::int64_t amount) {
  std::size_t const client = any_client(chances);
  std::string const& name = locks_[chances.one_in(4) ? 1 : 0].name;
  if (!awake(client)) return;
  task& one = begin_command(client, name, what, chances);
  one.amount = amount;
  start(one);
}

void simulation::change_number(dice& chances) {
  auto const n = chances.between(1, 3);
  switch (kind_.used_as) {
    case use::number: {
      auto const what = chances.one_in(3) ? semaphore_command::add : semaphore_command::drain;
      return command(chances, static_cast<unsigned char>(what), n);
    }
    case use::ids: {
      auto const what = chances.one_in(3) ? permit_command::add : permit_command::try_set;
      return command(chances, static_cast<unsigned char>(what), n);
    }
    default: return command(chances, static_cast<unsigned char>(latch_command::try_set), n);
  }
}

void simulation::give_permits(task& held, bool drop, dice& chances) {
  if (held.keeps && kind_.used_as == use::ids) return end_hold(held, drop, chances);
  held.ended = true;
  bool const ids = kind_.used_as == use::ids;
  auto const what = ids ? static_cast<unsigned char>(permit_command::try_release)
                        : static_cast<unsigned char>(semaphore_command::release);
  task& one = begin_command(held.client, held.key, what, chances);
  if (ids)
    one.argument = std::make_shared<std::string const>(field_of(held));
  else
    one.amount = held.amount;
  ended_by_[&one] = &held;
  start(one);
}

// From the sending on it counts on no more than the new lease. One such call after the other: of two at once nobody
// knows which one is the last.
void simulation::update_permit(task& held, dice& chances) {
  std::string const id = field_of(held);
  for (task const* open : open_)
    if (open->argument && *open->argument == id) return;
  task& one = begin_command(held.client, held.key, static_cast<unsigned char>(permit_command::update), chances);
  one.argument = std::make_shared<std::string const>(field_of(held));
  one.lease = milliseconds(chances.between(200, 9'000));
  longest_[&held] = std::max(longest_[&held], one.lease);
  held.shown.show(std::min(held.shown.until(), detail::after(one.started, one.lease)));
  ended_by_[&one] = &held;
  start(one);
}

// --- what they know of the number ---

bool simulation::is(task const& one, unsigned char command) const {
  return one.what == operation::type::command && one.command == command;
}

// By how much a call may raise the number.
std::int64_t simulation::raises(task const& one) const {
  switch (kind_.used_as) {
    case use::number:
      return is(one, static_cast<unsigned char>(semaphore_command::release)) ||
                     is(one, static_cast<unsigned char>(semaphore_command::add))
                 ? one.amount
                 : 0;
    case use::ids: return is(one, static_cast<unsigned char>(permit_command::add)) ? one.amount : 0;
    default: return 0;
  }
}

// By how much it may lower it.
std::int64_t simulation::lowers(task const& one) const {
  constexpr std::int64_t everything = std::int64_t{1} << 40;
  if (kind_.used_as == use::number) {
    if (one.what == operation::type::acquire) return one.amount;
    return is(one, static_cast<unsigned char>(semaphore_command::drain)) ? everything : 0;
  }
  bool const counts = kind_.used_as == use::latch && is(one, static_cast<unsigned char>(latch_command::count_down));
  return counts ? 1 : 0;
}

void simulation::account_begin(task const& one) {
  auto& count = lock_of(one.key).count;
  count.up += raises(one);
  count.down += lowers(one);
}

// What ended with an error may have happened, or may still happen; only who was granted nothing gets nothing in the
// end.
void simulation::account_end(task& one) {
  lock_state& lock = lock_of(one.key);
  auto& count = lock.count;
  if (kind_.used_as == use::ids && one.granted() && !one.keeps)
    one.shown.show(one.lease.count() > 0 ? detail::after(one.started, one.lease) : detail::never);
  if (kind_.used_as == use::ids && is(one, static_cast<unsigned char>(permit_command::update)) && !one.error) {
    task& held = const_cast<task&>(*ended_by_.at(&one));
    if (one.value != 0 && !held.ended) held.shown.show(detail::after(one.started, one.lease));
    if (one.value == 0) check_gone(one, held);
  }
  if (kind_.used_as == use::ids && is(one, static_cast<unsigned char>(permit_command::try_release)) && !one.error &&
      one.value == 0)
    check_gone(one, *ended_by_.at(&one));
  if (one.error) {
    if (kind_.used_as == use::latch) count.uncertain += lowers(one);
    bool const unseen = one.what == operation::type::acquire && one.error != errc::connection_lost;
    if (one.what == operation::type::acquire && kind_.used_as == use::number)
      (unseen ? ungranted_ : unanswered_).push_back(&one);
    return;
  }
  bool const of_before =
      lock.removed >= 0 && started_.at(&one) <= lock.removed;  // it may have run before or after that
  if (std::int64_t const more = of_before ? 0 : raises(one)) {
    count.base += more;
    count.up -= more;
  }
  if (kind_.used_as == use::number && one.what == operation::type::acquire && !one.yes)
    return ungranted_.push_back(&one);
  std::int64_t const less = lowers(one);
  if (less == 0) return;
  bool const drained = kind_.used_as == use::number && one.what == operation::type::command;
  if (kind_.used_as == use::latch && started_.at(&one) <= lock.set_at) return;  // it may have been of the count before
  if (!of_before) {
    count.base -= drained ? one.value : less;
    count.down -= less;
  }
  if (!drained || one.value == 0) return;
  one.amount = one.value;
  holders_.push_back(&one);
}

// Who gave a permit back by its id and was told of an error asks once more. That much later the client does so no more.
void simulation::give_back_again() {
  for (auto const& asked : tasks_) {
    bool const in_vain = is(*asked, static_cast<unsigned char>(permit_command::try_release)) && asked->done() &&
                         asked->error && now_ - started_.at(asked.get()) > ms(detail::mark_time);
    if (!in_vain || !at_ease(*nodes_[asked->client])) continue;
    task const& held = *ended_by_.at(asked.get());
    lock_state& lock = lock_of(held.key);
    if (kind_.look(data_of(lock), lock.name, field_of(held)).count > 0) stranger_gives(lock, field_of(held));
  }
}

// The server says that it has no such permit, though its lease lasts.
void simulation::check_gone(task const& asked, task const& held) {
  lock_state const& lock = lock_of(held.key);
  bool const other_end = std::any_of(ended_by_.begin(), ended_by_.end(), [&](auto const& one) {
    return one.second == &held && one.first != &asked && one.first->what == operation::type::command &&
           (one.first->error || !one.first->done() ||
            is(*one.first, static_cast<unsigned char>(permit_command::try_release)));
  });
  bool const lasts = held.shown.until() > client_time(*nodes_[held.client]) + nanoseconds(lost_rate_);
  if (lasts && lock.removed < 0 && !other_end) fail(asked.label + " was told that there is no permit of " + held.label);
}

void simulation::note_stock(lock_state& lock) {
  std::int64_t const stock = kind_.stock(data_of(lock), lock.name);
  std::int64_t const before = std::exchange(lock.stock, stock);
  if (kind_.used_as == use::latch) {
    (stock > 0 ? lock.closed_at : lock.open_at) = now_;
    if (before > 0 || stock <= 0) return;
    lock.set_at = now_;
    lock.sets.emplace_back(now_, running_for_ == somebody);
    lock.count = {stock, lock.count.uncertain, 0, lock.count.uncertain};
    for (task const* open : open_)
      if (open->key == lock.name) lock.count.down += lowers(*open);
    return;
  }
  for (task const* open : open_)
    if (open->key == lock.name && open->what == operation::type::acquire &&
        !kind_.free(data_of(lock), lock.name, field_of(*open), *open))
      scarce_.insert(open);
}

void simulation::check_stock() {
  std::erase_if(ungranted_, [&](task const* one) {
    node const& me = *nodes_[one->client];
    lock_state& lock = lock_of(one->key);
    if (lock.refused || now_ - started_.at(one) > ms(detail::mark_time)) return false;  // it may never come back
    if (me.gone || !me.machine.quiet() || me.turn_posted || !me.loans.empty()) return false;
    lock.count.down -= lowers(*one);
    return true;
  });
  for (auto const& lock : locks_) {
    auto const& count = lock.count;
    std::int64_t const least = count.base - count.down, most = count.base + count.up;
    std::int64_t const there = kind_.stock(data_of(lock), lock.name);
    bool const open = kind_.used_as == use::latch && there <= 0;
    if (there < 0 || there < least || (!open && there > most))
      fail(lock.name + " counts " + std::to_string(there) + ", which should be " + std::to_string(least) + " to " +
           std::to_string(most));
    if (kind_.used_as != use::ids) continue;
    std::int64_t trusted = 0;
    for (task const* one : holders_)
      trusted += one->key == lock.name && !excused(*one) &&
                 one->trusted(client_time(*nodes_[one->client]) + nanoseconds(lost_rate_));
    if (trusted > most) fail(lock.name + " has " + std::to_string(most) + " permits, and more are trusted");
  }
}

// Everything is as at the beginning, except for what is under way.
void simulation::stock_again(lock_state& lock) {
  if (kind_.used_as == use::holds) return;
  for (auto const& key : kind_.keys(lock.name)) data_of(lock).remove(key);
  at(lock).at.full = at(lock).at.read_only = false;
  if (kind_.used_as != use::latch || lock.removed < 0) kind_.prepare(at(lock).at, lock.name);
  set_modes();
  lock.stock = kind_.stock(data_of(lock), lock.name);
  lock.count.base = lock.stock;
  if (kind_.used_as == use::number) {
    for (task const* one : open_)
      if (one->key == lock.name && one->what == operation::type::acquire) lock.count.up += one->amount;
    for (task const* one : ungranted_)
      if (one->key == lock.name) lock.count.up += one->amount;
    for (task const* one : unanswered_)  // given back as long as the server remembers that it was taken
      if (one->key == lock.name) lock.count.up += one->amount;
  }
  lock.told_until = std::max(lock.told_until, now_ + ms(kind_.which.rules().hint_most));
}

// --- what they were told ---

void simulation::check_permit_answer(task const& done) {
  if (done.error) return;
  lock_state& lock = lock_of(done.key);
  moment const began = started_.at(&done);
  bool const queue = std::any_of(tasks_.begin(), tasks_.end(), [&](auto const& other) {
    return other.get() != &done && other->what == operation::type::acquire && other->client == done.client &&
           other->key == done.key && (!other->done() || other->done_at >= done.started);
  });
  if (kind_.used_as == use::latch) {
    if (done.granted() && lock.open_at < began) fail(done.label + " was let go, though the latch was not open");
    if (done.what == operation::type::acquire && !done.yes && !queue && lock.closed_at < began)
      fail(done.label + " was told that its time was over, though the latch was open");
    if (!is(done, static_cast<unsigned char>(latch_command::try_set))) return;
    if (done.value == 0 && lock.closed_at < began && lock.sets.empty())
      fail(done.label + " was told that there is a count already");
    if (done.value == 0) return;
    for (auto& [when, claimed] : lock.sets)
      if (when >= began && !claimed) {
        claimed = true;
        return;
      }
    return fail(done.label + " was told that it has set the count, which it did not");
  }
  if (done.what != operation::type::acquire || done.yes) return;
  if (!queue && !scarce_.contains(&done) && lock.removed < began)
    fail(done.label + " was told that there are no permits, though there were");
}

}  // namespace latchkey::simulation
