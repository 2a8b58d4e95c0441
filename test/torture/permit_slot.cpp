#include <torture/worker.hpp>

#include <algorithm>
#include <thread>

namespace latchkey::torture {

namespace {

std::string pool_name(slot& own, std::uint32_t lock) {
  return lock_name(static_cast<std::uint8_t>(&own.kind() - torture_kinds().data()), lock);
}

void rest_after_error(slot& own) { std::this_thread::sleep_for(milliseconds(own.dice().between(1, 30))); }

// Sets the number of permits if nobody has yet. False: nobody knows.
template <class Pool>
bool prepare(slot& own, Pool const& pool, std::uint32_t lock) {
  own.begin(call::set_permits, lock, longest_call(own.in().settings));
  try {
    bool const first = pool.try_set_permits(permits);
    own.end({}, first);
    return true;
  } catch (lock_error const& error) {
    own.end(error.code());
    rest_after_error(own);
    return false;
  }
}

bool pretend(slot& own, plan const& what) {
  if (!own.ignores_exclusion()) return false;
  own.granted(0);
  auto const seen = work_inside(pretended{}, what.work + 20 * ms);
  own.leave(seen.trusted(), seen.told(), 0);
  own.released(outcome::released);
  return true;
}

// What the workers of `--broken early` do.
template <class Release>
bool end_early(slot& own, plan const& what, Release&& release) try {
  if (!own.releases_early() || !own.dice().one_in(5)) return false;
  release();
  auto const seen = work_inside(pretended{}, what.work + 20 * ms);
  own.leave(seen.trusted(), seen.told(), 0);
  own.released(outcome::released);
  return true;
} catch (lock_error const& error) {
  own.released(error.code());
  return true;
}

void leased_section(slot& own, permit_semaphore const& pool, plan const& what) {
  own.ask(what);
  if (pretend(own, what)) return;
  permit held;
  // Without a lease the permit of a killed process would never come back.
  auto const length = what.lease.value_or(own.in().run.lease * 2);
  try {
    acquire_options how;
    how.wait = what.wait;
    how.lease = length;
    held = pool.acquire_permit(how);
  } catch (lock_error const& error) {
    own.refused(error.code());
    return rest_after_error(own);
  }
  if (!held) return own.refused({});
  own.granted(0);
  if (end_early(own, what, [&] { held.release(); })) return;
  try {
    if (what.extends) static_cast<void>(held.extend(*what.extends));
  } catch (lock_error const&) {
    // Then it lasts as long as before at most.
  }
  auto const seen = work_inside(held, what.work);
  own.leave(seen.trusted(), seen.told(), std::max(length, what.extends.value_or(milliseconds(0))).count() * ms);
  try {
    if (what.drops) {
      held = permit();
      return own.released(outcome::dropped);
    }
    own.released(static_cast<outcome>(held.release()));
  } catch (lock_error const& error) {
    own.released(error.code());
  }
}

void bare_section(slot& own, semaphore const& pool, plan const& what) {
  own.ask(what);
  if (pretend(own, what)) return;
  try {
    if (!pool.try_acquire(1, what.wait)) return own.refused({});
  } catch (lock_error const& error) {
    own.refused(error.code());
    return rest_after_error(own);
  }
  own.granted(0);
  if (end_early(own, what, [&] { pool.release(); })) return;
  auto const seen = work_inside(pretended{}, std::min(what.work, 10 * ms));
  own.leave(seen.trusted(), seen.told(), 0);
  try {
    pool.release();
    own.released(outcome::released);
  } catch (lock_error const& error) {
    own.released(error.code());
  }
}

}  // namespace

void run_permit_thread(slot& own) {
  bool ready[locks_of_a_kind] = {};
  auto const one = [&](plan const& what) {
    auto const pool = own.in().clients[0].get_permit_semaphore(pool_name(own, what.lock));
    ready[what.lock] = ready[what.lock] || prepare(own, pool, what.lock);
    if (ready[what.lock]) leased_section(own, pool, what);
  };
  while (own.phase() == board::work) {
    auto const next = own.draw();
    one(next);
    rest_after(next);
  }
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) one(own.last(lock));
}

void run_semaphore_thread(slot& own) {
  std::uint32_t ready[locks_of_a_kind] = {};
  auto const one = [&](plan const& what) {
    auto const pool = own.in().clients[0].get_semaphore(pool_name(own, what.lock));
    auto& known = ready[what.lock % locks_of_a_kind];
    if (known != what.lock + 1 && prepare(own, pool, what.lock)) known = what.lock + 1;
    if (known == what.lock + 1) bare_section(own, pool, what);
  };
  while (own.phase() == board::work) {
    auto const next = own.draw();
    one(next);
    rest_after(next);
  }
}

namespace {

// Rounds begin with who draws the first ticket of a round: he sets the count. Then all parties count down and wait.
struct round_of {
  std::uint64_t number;
  bool sets;
};

round_of next_round(board& shared) {
  auto const ticket = shared.latch_tickets.fetch_add(1);
  return {ticket / latch_parties + 1, ticket % latch_parties == 0};
}

// True: a count was set, and by whom it should be.
bool set_count(slot& own, count_down_latch const& latch, std::uint32_t lock) {
  own.begin(call::set_count, lock, longest_call(own.in().settings));
  try {
    bool const first = latch.try_set_count(latch_parties);
    own.end({}, first ? latch_parties : 0);
    return first;
  } catch (lock_error const& error) {
    own.end(error.code());
    return false;
  }
}

void count_down(slot& own, count_down_latch const& latch, std::uint32_t lock) {
  own.begin(call::count_down, lock, longest_call(own.in().settings));
  try {
    latch.count_down();
    own.end({});
  } catch (lock_error const& error) {
    own.end(error.code());
  }
}

void wait(slot& own, count_down_latch const& latch, std::uint32_t lock) {
  plan what;
  what.lock = lock;
  what.wait = own.in().run.lease * 3;
  own.ask(what);
  try {
    if (!own.ignores_exclusion() && !own.releases_early() && !latch.wait_for(what.wait)) return own.refused({});
    own.granted(0);
    own.leave(now(), told_not, 0);
    own.released(outcome::released);
  } catch (lock_error const& error) {
    own.refused(error.code());
    std::this_thread::sleep_for(milliseconds(own.dice().between(1, 30)));
  }
}

// A round whose first party was killed never begins.
bool await_count(slot& own, std::atomic<std::uint64_t> const& set, std::uint64_t number) {
  auto const end = now() + own.in().run.lease.count() * 3 * ms;
  while (set != number && now() < end && own.phase() == board::work) std::this_thread::sleep_for(milliseconds(1));
  return set == number;
}

}  // namespace

void run_latch_thread(slot& own) {
  auto& shared = own.in().shared;
  auto const kind = static_cast<std::uint8_t>(&own.kind() - torture_kinds().data());
  while (own.phase() == board::work) {
    auto const round = next_round(shared);
    auto const lock = static_cast<std::uint32_t>(round.number);
    auto const latch = own.in().clients[0].get_count_down_latch(lock_name(kind, lock));
    auto& set = shared.latch_set[round.number % shared.latch_set.size()];
    if (round.sets && set_count(own, latch, lock)) set = round.number;
    if (!round.sets && !await_count(own, set, round.number)) continue;
    if (set != round.number) continue;
    count_down(own, latch, lock);
    wait(own, latch, lock);
    rest_after(own.draw());
  }
}

}  // namespace latchkey::torture
