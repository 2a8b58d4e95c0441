#include <base/clock.hpp>
#include <engine/core.hpp>
#include <engine/test_clock.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace latchkey::detail {

namespace {

// Only what hangs takes so long.
constexpr milliseconds longest_settling{5'000};
// Nobody may be running the executor of others.
constexpr milliseconds longest_elsewhere{10};

// Never destroyed: clients may outlive everything else.
struct roll {
  std::mutex mutex;
  std::vector<std::weak_ptr<core>> clients;
};

roll& all() {
  static roll& made = *new roll;
  return made;
}

// Used outside the mutex: a client may end with the last one who looks at it.
std::vector<std::shared_ptr<core>> alive() {
  std::vector<std::shared_ptr<core>> made;
  std::scoped_lock const lock(all().mutex);
  for (auto const& core : all().clients)
    if (auto found = core.lock(); found && !found->forked()) made.push_back(std::move(found));
  return made;
}

bool is_settled(core& core) {
  return core.machine_steps().look([](client_machine& machine) { return machine.settled(boot_now()); });
}

}  // namespace

void test_clock::begin() noexcept { process_clock.may_change.store(true, std::memory_order_relaxed); }

void test_clock::advance(nanoseconds by) {
  process_clock.ahead.fetch_add(by.count(), std::memory_order_relaxed);
  for (auto const& core : alive()) core->machine_steps().timer().clock_jumped();
}

void test_clock::settle(std::string_view socket) {
  using steady = std::chrono::steady_clock;
  auto const end = steady::now() + longest_settling;
  for (auto const& core : alive()) {
    if (core->server().where.path != socket || core->threads().inside()) continue;
    auto const limit = core->threads().own() ? end : std::min(end, steady::now() + longest_elsewhere);
    while (!is_settled(*core) && steady::now() < limit) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void test_clock::doubt_holds(std::string_view socket) {
  for (auto const& core : alive())
    if (core->server().where.path == socket)
      core->machine_steps().take(
          [](client_machine& machine, instant now, actions& out) { machine.doubt_holds(now, out); });
}

void test_clock::enlist(std::shared_ptr<core> const& core) {
  if (!clock_may_jump()) return;
  std::scoped_lock const lock(all().mutex);
  std::erase_if(all().clients, [](auto const& other) { return other.expired(); });
  all().clients.push_back(core);
}

}  // namespace latchkey::detail
