#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

using detail::operation;
using detail::query;

namespace {

constexpr std::uint64_t owners = 3;  // of each client

}  // namespace

task& simulation::made(operation::type what, std::size_t client, std::uint64_t owner, std::string const& name) {
  task& one = *tasks_.emplace_back(std::make_unique<task>());
  instant const now = client_time(*nodes_[client]);
  one.what = what;
  one.which = &kind_.which;
  one.key = name;
  one.name = one.key;
  one.owner = owner;
  one.client = client;
  one.shown.of = &one;
  one.started = now;
  static constexpr char const* names[] = {"acquire", "release", "extend", "force_unlock", "query", "command"};
  one.label = "#" + std::to_string(tasks_.size()) + " " + names[static_cast<int>(what)] + " of " + name + " by " +
              nodes_[client]->id + ":" + std::to_string(owner);
  // What a call without a wait may take in all.
  one.deadline = budget_end(now);
  started_[&one] = now_;
  return one;
}

void simulation::start(task& one, std::span<task* const> beside) {
  node& me = *nodes_[one.client];
  one.self_timed = one.direct && beside.empty();
  std::vector<operation*> all{&one};
  all.insert(all.end(), beside.begin(), beside.end());
  for (operation* const each : all) {
    task& begins = static_cast<task&>(*each);
    tell([&] { return begins.label + " begins" + (one.direct ? " (blocking)" : "") + details_of(begins); });
    open_.push_back(&begins);
    if (kind_.used_as != simulated_kind::use::holds) {
      account_begin(begins);
      note_stock(lock_of(begins.key));
    }
    limit(begins);
    if (is_planted(planted_fault::trick::sleeps_late) && begins.deadline != detail::never)
      begins.deadline = detail::after(begins.deadline, milliseconds(80));
  }
  std::uint32_t lane = me.machine.start(all, one.direct, client_time(me), me.out);
  if (is_planted(planted_fault::trick::lends_twice) && one.direct && !me.loans.empty()) lane = me.loans[0].serial;
  if (lane != 0) {
    if (me.loan_of(lane)) fail("the direct lane was lent twice");
    me.loans.push_back({lane, &one, end_of_loan(me, one), {}});
  }
  perform(one.client);
  if (lane != 0) say(one.client, lane, std::string(me.machine.lane_bytes(lane)));
}

std::string simulation::details_of(task const& one) {
  std::string made;
  if (one.what == operation::type::acquire) {
    made += one.once ? ", one try" : one.deadline == detail::never ? ", for ever" : ", for a while";
    made += one.lease.count() > 0 ? ", lease " + std::to_string(one.lease.count()) + " ms" : ", watchdog";
    if (one.max_hold.count() > 0) made += ", at most " + std::to_string(one.max_hold.count()) + " ms";
  }
  if (one.what == operation::type::extend) made += " to " + std::to_string(one.lease.count()) + " ms";
  return made;
}

void simulation::completed(task& done) {
  if (is_planted(planted_fault::trick::never_completes) && done.label.starts_with("#9 ")) return;
  bool const forgotten = is_planted(planted_fault::trick::forgets_a_call) && done.label.starts_with("#9 ");
  if (!forgotten) ++done.completions;
  done.done_at = client_time(*nodes_[done.client]);
  tell([&] {
    return done.label +
           (done.error                              ? " ends: " + done.error.message()
            : done.what == operation::type::acquire ? done.yes ? " is granted" : " is told: busy"
            : done.what == operation::type::release ? " is done"
            : done.what == operation::type::query   ? " is answered " + std::to_string(done.value)
            : done.yes                              ? " is done"
                                                    : " is told: not there") +
           (done.text.empty() ? "" : " (" + done.text + ")");
  });
  if (is_planted(planted_fault::trick::always_released) && done.what == operation::type::release) {
    done.error = {};
    done.released = release_result::released;
  }
  if (done.completions > 1) fail(done.label + " was completed twice");
  check_limit(done);
  std::erase(open_, &done);
  using use = simulated_kind::use;
  if (done.granted() && kind_.used_as != use::latch) holders_.push_back(&done);
  look_again_ = true;
  if (done.granted() && kind_.used_as == use::holds) check_share(done);
  if (done.what == operation::type::force_unlock && done.yes && !done.error) check_forced(done);
  if (in_vain_.contains(&done) && !done.error) fail(done.label + " has ended what a lease shows", eye::shown);
  if (part_of_.contains(&done)) joint_answers_.push_back(&done);
  if (auto const part = extensions_.extract(&done))
    part.mapped()->trust.extended(joint_rules_of({}).drift(done.lease), done.yes);
  if (kind_.used_as != use::holds) {
    account_end(done);
    check_permit_answer(done);
  }
  if (kind_.used_as == use::holds || kind_.used_as == use::ids) check_answer(done);
}

// --- what callers do ---

simulation::lock_state& simulation::any_lock(dice& chances) {
  if (kind_.joint()) return locks_[chances.below(locks_.size())];
  return locks_[chances.one_in(4) ? 1 : 0];
}

std::size_t simulation::any_client(dice& chances) const {
  std::size_t client = chances.below(nodes_.size());
  while (nodes_[client]->gone) client = (client + 1) % nodes_.size();
  return client;
}

task* simulation::any_held(dice& chances, bool live) const {
  std::vector<task*> fits;
  for (task* one : holders_)
    if (!one->ended && (!live || !one->shown.lost) && awake(one->client)) fits.push_back(one);
  return fits.empty() ? nullptr : fits[chances.below(fits.size())];
}

void simulation::act(move const& one) {
  dice chances = one.chances();
  forgive();
  if (kind_.used_as != simulated_kind::use::holds && act_on_permits(one, chances)) return;
  if (kind_.joint() && act_on_joints(one, chances)) return;
  switch (one.what) {
    case deed::acquire:
    case deed::try_once: return begin_acquire(chances, one.what == deed::try_once);
    case deed::release:
    case deed::drop:
      if (task* const held = any_held(chances, false)) end_hold(*held, one.what == deed::drop, chances);
      return;
    case deed::unlock: {
      task* const held = any_held(chances, false);
      if (!held) return;
      // It ends the owner's newest hold, whichever that is when it comes to it: one call after the other.
      if (!owner_asks(*held)) unlock(*held, chances);
      return;
    }
    case deed::extend:
      if (task* const held = any_held(chances, true); held && held->link) extend(*held, chances);
      return;
    case deed::query: return ask(chances);
    case deed::force_unlock: return force(chances);
    case deed::cancel: {
      std::vector<task*> waits;
      for (task* open : open_)
        if (open->what == operation::type::acquire && awake(open->client)) waits.push_back(open);
      if (waits.empty()) return;
      task& given_up = *waits[chances.below(waits.size())];
      node& me = *nodes_[given_up.client];
      tell([&] { return given_up.label + " is cancelled"; });
      me.machine.cancel(given_up, client_time(me), me.out);
      return perform(given_up.client);
    }
    case deed::close: {
      std::size_t const client = any_client(chances);
      node& me = *nodes_[client];
      if (!awake(client) || me.closing) return;
      me.closing = true;
      tell([&] { return me.id + " is closed"; });
      me.machine.close(1 + chances.below(owners), client_time(me), me.out);
      return perform(client);
    }
    default: return befall(one);
  }
}

void simulation::begin_acquire(dice& chances, bool once) {
  std::size_t const client = any_client(chances);
  std::uint64_t const owner = 1 + chances.below(owners);
  std::string const& name = locks_[chances.one_in(4) ? 1 : 0].name;
  if (!awake(client)) return;
  task& one = made(operation::type::acquire, client, owner, name);
  one.link = &one.shown;
  one.once = once;
  one.direct = chances.one_in(3);
  one.mode = static_cast<unsigned char>(chances.below(kind_.modes));
  if (!once)
    one.deadline = chances.one_in(2) ? detail::never
                                     : detail::after(client_time(*nodes_[client]), milliseconds(chances.below(6'000)));
  one.line_time = settings_.fair_lock_wait_timeout;
  if (one.deadline != detail::never)
    one.line_time = std::min(
        one.line_time, std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(one.deadline - one.started)));
  if (chances.one_in(3)) one.lease = milliseconds(200 + static_cast<std::int64_t>(chances.below(8'000)));
  if (one.lease.count() == 0 && chances.one_in(6)) one.max_hold = milliseconds(chances.between(100, 5'000));
  for (std::uint64_t other = 1; other <= owners; ++other)
    if (other != owner && nodes_[client]->machine.keeps_out(kind_.which, name, other, one.mode))
      behind_ours_.insert(&one);
  longest_[&one] = one.lease.count() > 0 ? one.lease : settings_.lock_watchdog_timeout;
  if (chances.one_in(3)) one.link = nullptr;  // lock(), or a guard: nobody looks
  if (retakes_ > 0 && one.link && chances.one_in(2)) greedy_.push_back(&one);
  start(one);
}

bool simulation::owner_asks(task const& held) const {
  return std::any_of(open_.begin(), open_.end(), [&](task const* other) {
    return other->client == held.client && other->owner == held.owner && other->key == held.key;
  });
}

void simulation::end_hold(task& held, bool drop, dice& chances) {
  if (!held.link && !owner_asks(held)) return unlock(held, chances);
  node& me = *nodes_[held.client];
  held.ended = true;
  me.machine.unlink(*held.which, held.key, held.owner, held.hold);
  if (is_planted(planted_fault::trick::tells_of_released)) me.out.lost.push_back({&held.shown, errc::lease_lost});
  if (drop) {
    tell([&] { return held.label + " is dropped"; });
    me.machine.drop(*held.which, held.key, held.owner, held.hold, client_time(me), me.out);
    return perform(held.client);
  }
  task& one = made(operation::type::release, held.client, held.owner, held.key);
  one.mode = held.mode;
  one.hold = held.hold;
  one.direct = chances.one_in(3);
  ended_by_[&one] = &held;
  ended_in_[&one] = field_of(held);
  start(one);
}

void simulation::extend(task& held, dice& chances) {
  task& one = made(operation::type::extend, held.client, held.owner, held.key);
  one.mode = held.mode;
  one.hold = held.hold;
  one.lease = milliseconds(chances.between(200, 40'000));
  one.direct = chances.one_in(3);
  longest_[&held] = std::max(longest_[&held], one.lease);
  extended_.insert(&held);
  start(one);
}

void simulation::ask(dice& chances) {
  std::size_t const client = any_client(chances);
  if (!awake(client)) return;
  task& one = made(operation::type::query, client, 1 + chances.below(owners), locks_[chances.below(2)].name);
  constexpr query questions[] = {query::is_locked, query::is_held_by, query::hold_count, query::time_to_live};
  one.question = chances.of(questions);
  one.direct = chances.one_in(3);
  start(one);
}

void simulation::force(dice& chances) {
  std::size_t client = any_client(chances);
  lock_state const& lock = kind_.joint() ? any_lock(chances) : locks_[0];
  client = nodes_[client]->process * sites_.size() + lock.place;
  if (!awake(client)) return;
  task& one = made(operation::type::force_unlock, client, 0, lock.name);
  one.direct = chances.one_in(3);
  start(one);
}

}  // namespace latchkey::simulation
