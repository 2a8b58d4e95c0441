// How often memory is allocated, by this program, the library and hiredis.
#include <costs/allocation_counter.hpp>
#include <suite/stage.hpp>

#include <latchkey/latchkey.hpp>

#include <functional>

namespace bench {
namespace {

// Of this thread, per turn, when everything that happens once has happened.
double allocations_of(std::function<void()> const& turn) {
  constexpr int turns = 1'000;
  for (int i = 0; i < turns; ++i) turn();
  auto const before = latchkey::test::allocations_of_this_thread();
  for (int i = 0; i < turns; ++i) turn();
  return static_cast<double>(latchkey::test::allocations_of_this_thread() - before) / turns;
}

}  // namespace

void run_allocations(stage& on) {
  latchkey::client const client(on.uri(), quiet_config());
  auto const lock = client.get_lock(new_name("allocations"));
  on.add({.name = "blocking pair",
          .unit = "",
          .figure = allocations_of([&] {
            lock.lock();
            lock.unlock();
          }),
          .most = 0});
  on.add({.name = "scope", .unit = "", .figure = allocations_of([&] { static_cast<void>(lock.acquire()); })});
}

}  // namespace bench
