#include <interop/latchkey_driver/calls.hpp>

namespace latchkey::test {

namespace {

// A permit without a lease stays until it is released, as Redisson's with a lease of -1.
std::optional<std::string> try_acquire(permit_semaphore const& found, call_line const& call) {
  if (call.number_at(1) == -1) return found.try_acquire(call.time_at(0));
  return found.try_acquire(call.time_at(0), call.time_at(1));
}

}  // namespace

std::optional<std::string> make_semaphore_call(driver_world const& world, call_line const& call) {
  auto const found = world.clients.front().get_semaphore(call.name());
  auto const& operation = call.operation;
  auto const permits = call.has(0) ? static_cast<int>(call.number_at(0)) : 0;
  if (operation == "try_set_permits") return word(found.try_set_permits(permits));
  if (operation == "available_permits") return std::to_string(found.available_permits());
  if (operation == "drain_permits") return std::to_string(found.drain_permits());
  if (operation == "try_acquire") return word(found.try_acquire(permits, call.time_at(1)));
  if (operation == "add_permits") {
    found.add_permits(permits);
    return "added";
  }
  if (operation == "acquire") {
    found.acquire(permits);
    return "acquired";
  }
  if (operation == "release") {
    found.release(permits);
    return "released";
  }
  return std::nullopt;
}

std::optional<std::string> make_permit_call(driver_world const& world, call_line const& call) {
  auto const found = world.clients.front().get_permit_semaphore(call.name());
  auto const& operation = call.operation;
  if (operation == "try_acquire") return try_acquire(found, call).value_or("null");
  if (operation == "try_release") return word(found.try_release(call.arguments.at(0)));
  if (operation == "update_lease_time") return word(found.update_lease_time(call.arguments.at(0), call.time_at(1)));
  if (operation == "available_permits") return std::to_string(found.available_permits());
  if (operation == "acquired_permits") return std::to_string(found.acquired_permits());
  auto const permits = static_cast<int>(call.number_at(0));
  if (operation == "try_set_permits") return word(found.try_set_permits(permits));
  if (operation == "set_permits") {
    found.set_permits(permits);
    return "set";
  }
  if (operation == "add_permits") {
    found.add_permits(permits);
    return "added";
  }
  return std::nullopt;
}

std::optional<std::string> make_latch_call(driver_world const& world, call_line const& call) {
  auto const found = world.clients.front().get_count_down_latch(call.name());
  auto const& operation = call.operation;
  if (operation == "try_set_count") return word(found.try_set_count(call.number_at(0)));
  if (operation == "count") return std::to_string(found.count());
  if (operation == "wait_for") return word(found.wait_for(call.time_at(0)));
  if (operation == "count_down") {
    found.count_down();
    return "counted";
  }
  return std::nullopt;
}

}  // namespace latchkey::test
