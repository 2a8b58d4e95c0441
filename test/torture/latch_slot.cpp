#include <torture/slot.hpp>

#include <thread>

namespace latchkey::torture {

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
  }
}

}  // namespace latchkey::torture
