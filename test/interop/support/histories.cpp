#include <interop/support/history.hpp>

#include <cstdlib>

namespace latchkey::test {

namespace {

// Differences that are meant to be have tests of their own in differences_test.cpp.
constexpr std::string_view reentrant_steps = R"(a lock
a try_lock
b try_lock
b try_lock 60 -1
b begin lock
a unlock
a unlock; b finish
b unlock
a lock 900
b try_lock
expire
a unlock
b try_lock 0 5000
a try_lock 30 -1
b force_unlock
b unlock
a try_lock
a unlock)";

constexpr std::string_view non_reentrant_steps = R"(a lock
a try_lock
b try_lock
b try_lock 60 -1
b begin lock
a unlock; b finish
b try_lock
b unlock
a lock 900
expire
a unlock
b try_lock 0 5000
b force_unlock
b unlock)";

// Two waiters of two processes; who gives up lets those behind move up.
constexpr std::string_view fair_steps = R"(a lock
b try_lock
b try_lock 60 -1; pause 60
b begin lock
a2 begin lock
a try_lock
a unlock
a unlock; b finish
a try_lock
b unlock; a2 finish
a2 unlock
a lock 900
b try_lock
expire
b try_lock
a begin try_lock 1200 -1
a finish; pause 60
a begin try_lock 3000 -1
b2 begin try_lock 6000 -1
a2 begin lock
a finish; pause 60
! b unlock; b2 finish; pause 60
b2 force_unlock; a2 finish
a2 unlock)";

constexpr std::string_view read_steps = R"(a lock
a try_lock
~ a unlock
b try_lock
b2 write_lock.try_lock
~ b unlock
b begin write_lock.lock
a unlock; b finish
a try_lock
a try_lock 60 -1
b write_lock.unlock
a lock 5000
b lock
b lock 40000
~ a unlock
~ b unlock
b unlock
a lock 900
expire
! a unlock
b try_lock 0 5000
a write_lock.force_unlock
a force_unlock
! b unlock
a try_lock
a unlock)";

constexpr std::string_view write_steps = R"(a lock
b try_lock
b read_lock.try_lock
b begin lock
a unlock; b finish
b read_lock.lock
a read_lock.try_lock
~! b unlock
a read_lock.try_lock
a2 try_lock
~ a read_lock.unlock
b read_lock.unlock
a lock
b begin read_lock.lock
b2 begin read_lock.lock
a unlock; b finish; b2 finish
~ b read_lock.unlock
b2 read_lock.unlock
a lock 900
b try_lock
expire
! a unlock
b try_lock 0 5000
a try_lock 30 -1
a read_lock.force_unlock
a force_unlock
! b unlock
a try_lock
a unlock)";

// What is made of several locks: nobody is asked, nobody unlocked by force. A red lock is held when most servers have
// said so, and a refused one is given back; the rest comes a little later. A waiter may take members that are free
// before the others are, and give them back.
constexpr std::string_view joint_steps = R"(a lock; pause 60
b try_lock; pause 60
? b try_lock 60 -1; pause 60
a try_lock; pause 60
~ a unlock; pause 60
b begin lock
? a unlock; b finish; pause 60
b unlock; pause 60
b try_lock 0 5000; pause 60
a try_lock; pause 60
b unlock; pause 60
a lock 900; pause 60
expire
b try_lock; pause 60
b unlock; pause 60)";

constexpr std::string_view semaphore_steps = R"(a try_acquire 1 0
a try_set_permits 3
b try_set_permits 5
a try_acquire 2 0
b try_acquire 2 0
! b try_acquire 2 60
b begin acquire 2
a release 1; b finish
a release 4
b available_permits
b drain_permits
a add_permits 2
b add_permits -3
a available_permits
a release 3
b available_permits)";

constexpr std::string_view permit_steps = R"(a try_acquire 0 5000
a try_set_permits 2
b try_set_permits 5
a try_acquire 0 5000
b try_acquire 0 -1
a try_acquire 60 5000
b begin try_acquire 5000 5000
a try_release $1; b finish
b acquired_permits
a available_permits
b set_permits 4
a add_permits 1
b available_permits
a update_lease_time $2 900
b update_lease_time $3 7000
pause 1000
b acquired_permits
b try_release $2
a try_release $3
a available_permits
a set_permits 1
b available_permits)";

constexpr std::string_view latch_steps = R"(a wait_for 0
a count_down
a try_set_count 2
b try_set_count 3
b count
a wait_for 60
b begin wait_for 5000
a count_down
b2 count_down; b finish
a count
b try_set_count 1
a count_down)";

// For work on one kind: LATCHKEY_INTEROP_ONLY names the kinds, separated by commas.
std::vector<history> wanted(std::vector<history> all) {
  char const* const only = std::getenv("LATCHKEY_INTEROP_ONLY");
  std::erase_if(all, [&](history const& one) {
    return only != nullptr && ("," + std::string(only) + ",").find("," + one.kind + ",") == std::string::npos;
  });
  return all;
}

}  // namespace

std::vector<history> const& histories() {
  static std::vector<history> const all = wanted({
      {"lock", parts_of(reentrant_steps, '\n')},
      {"fair_lock", parts_of(fair_steps, '\n')},
      {"non_reentrant_lock", parts_of(non_reentrant_steps, '\n')},
      {"spin_lock", parts_of(reentrant_steps, '\n')},
      {"fenced_lock", parts_of(reentrant_steps, '\n')},
      {"read_lock", parts_of(read_steps, '\n')},
      {"write_lock", parts_of(write_steps, '\n')},
      {"multi_lock", parts_of(joint_steps, '\n'), 3},
      {"red_lock", parts_of(joint_steps, '\n'), 3},
      {"semaphore", parts_of(semaphore_steps, '\n')},
      {"permit_semaphore", parts_of(permit_steps, '\n')},
      {"count_down_latch", parts_of(latch_steps, '\n')},
  });
  return all;
}

}  // namespace latchkey::test
