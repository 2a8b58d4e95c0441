#include <simulation/moves.hpp>

namespace latchkey::simulation {

namespace {

struct entry {
  deed what;
  char const* name;
  unsigned weight;
};

constexpr entry table[] = {
    {deed::acquire, "acquire", 30},
    {deed::try_once, "try once", 10},
    {deed::release, "release", 22},
    {deed::drop, "drop", 6},
    {deed::unlock, "unlock", 6},
    {deed::extend, "extend", 5},
    {deed::query, "query", 3},
    {deed::force_unlock, "force unlock", 2},
    {deed::cancel, "cancel", 6},
    {deed::close, "close", 1},
    {deed::cut, "cut", 8},
    {deed::silence, "silence", 3},
    {deed::hold_up, "hold up", 5},
    {deed::refuse_connections, "refuse connections", 2},
    {deed::pause_client, "pause client", 4},
    {deed::stop_borrower, "stop borrower", 3},
    {deed::crash_client, "crash client", 3},
    {deed::stall_server, "stall server", 3},
    {deed::load, "load", 3},
    {deed::refuse_writes, "refuse writes", 2},
    {deed::fill_memory, "fill memory", 3},
    {deed::run_long_script, "run long script", 3},
    {deed::flush_scripts, "flush scripts", 3},
    {deed::restart, "restart", 3},
    {deed::restart_empty, "restart empty", 2},
    {deed::lose_message, "lose message", 3},
    {deed::double_message, "double message", 3},
    {deed::stranger_takes, "stranger takes", 8},
    {deed::stranger_releases, "stranger releases", 8},
    {deed::stranger_forces, "stranger forces", 2},
    {deed::remove_key, "remove key", 2},
    {deed::refuse_kill, "refuse kill", 3},
    {deed::sicken, "sicken", 3},
};
static_assert(std::size(table) == deeds);

constexpr deed first_fault = deed::cut;

}  // namespace

char const* name_of(deed what) { return table[static_cast<std::size_t>(what)].name; }

// A seed leaves most faults out: those it has come together more often than if every seed had all of them.
plan::plan(std::uint64_t seed) : seed_(seed) {
  dice chances(mix(seed, 1));
  std::uint64_t const mood = chances.below(8);
  haste_ = static_cast<unsigned>(chances.below(4));
  for (auto const& one : table) {
    bool taken = chances.below(5) != 0;
    if (one.what == deed::acquire || one.what == deed::release) taken = true;
    if (one.what == deed::force_unlock || one.what == deed::close) taken = chances.one_in(4);
    if (one.what >= first_fault && one.what < deed::stranger_takes)
      taken = mood == 0 ? false : chances.one_in(mood < 4 ? 8 : mood < 7 ? 3 : 1);
    if (one.what == deed::refuse_kill) taken = mood != 0 && chances.one_in(8);
    if (one.what == deed::sicken) taken = mood != 0 && chances.one_in(12);
    if (one.what >= deed::stranger_takes && one.what <= deed::remove_key) taken = chances.one_in(2);
    if (one.what == deed::stranger_forces || one.what == deed::remove_key) taken = taken && chances.one_in(3);
    auto const index = static_cast<std::size_t>(one.what);
    weights_[index] = taken ? one.weight : 0;
    if (one.what == deed::stranger_releases) weights_[index] = weights_[index - 1];
    total_ += weights_[index];
  }
}

move plan::next() {
  dice chances(mix(seed_, 2, number_));
  // Mostly while something is on its way; now and then long enough for a lease to end.
  std::uint64_t const pace = chances.below(16);
  moment gap = 0;
  if (pace < 6)
    gap = chances.between(0, 300'000);
  else if (pace < 10 + haste_)
    gap = chances.between(0, ms(5));
  else if (pace < 15)
    gap = chances.between(0, ms(400));
  else
    gap = chances.between(0, ms(12'000));
  at_ += gap;
  std::uint64_t chosen = chances.below(total_);
  std::size_t index = 0;
  while (chosen >= weights_[index]) chosen -= weights_[index++];
  return {static_cast<deed>(index), number_++, at_, chances.any()};
}

}  // namespace latchkey::simulation
