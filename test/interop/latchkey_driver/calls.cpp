#include <interop/latchkey_driver/call.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace latchkey::test {

std::string word(bool value) { return value ? "true" : "false"; }

std::string remaining(distributed_lock const& lock) {
  auto const left = lock.remaining_time_to_live();
  if (!left) return "-2";
  return *left == milliseconds::max() ? "-1" : std::to_string(left->count());
}

namespace {

// One on each server, as far as there are servers.
std::vector<distributed_lock> members(driver_world const& world, call_line const& call) {
  std::vector<distributed_lock> result;
  for (std::size_t i = 0; i < call.names.size(); ++i) {
    result.push_back(world.clients[std::min(i, world.clients.size() - 1)].get_lock(call.names[i]));
  }
  return result;
}

}  // namespace

distributed_lock find_lock(driver_world const& world, call_line const& call) {
  auto const& first = world.clients.front();
  auto const& kind = call.kind;
  if (kind == "lock") return first.get_lock(call.name());
  if (kind == "lock_on_1") return world.clients.at(1).get_lock(call.name());
  if (kind == "lock_on_2") return world.clients.at(2).get_lock(call.name());
  if (kind == "fair_lock") return first.get_fair_lock(call.name());
  if (kind == "non_reentrant_lock") return first.get_non_reentrant_lock(call.name());
  if (kind == "spin_lock") return first.get_spin_lock(call.name());
  if (kind == "fenced_lock") return first.get_fenced_lock(call.name());
  if (kind == "read_lock") return first.get_read_write_lock(call.name()).read_lock();
  if (kind == "write_lock") return first.get_read_write_lock(call.name()).write_lock();
  if (kind == "multi_lock") return first.get_multi_lock(members(world, call));
  if (kind == "red_lock") return first.get_red_lock(members(world, call));
  throw std::invalid_argument("no such kind: " + kind);
}

namespace {

std::string lock(distributed_lock const& lock, call_line const& call) {
  if (call.has(0)) {
    lock.lock(call.time_at(0));
  } else {
    lock.lock();
  }
  return "held";
}

// As Redisson's: a lease of -1 leaves the renewal to the watchdog.
bool try_lock(distributed_lock const& lock, call_line const& call) {
  if (!call.has(0)) return lock.try_lock();
  if (call.number_at(1) == -1) return lock.try_lock(call.time_at(0));
  return lock.try_lock(call.time_at(0), call.time_at(1));
}

// Within so many milliseconds the client says that a hold is lost: of this lock, or of one that it is a part of.
std::string await_loss(driver_world const& world, call_line const& call) {
  auto const told = [&] {
    auto const events = world.log.all();
    return std::any_of(events.begin(), events.end(),
                       [&](logged_event const& one) { return one.lock.find(call.name()) != std::string::npos; });
  };
  return wait_until(told, call.time_at(0)) ? "lost" : "kept";
}

}  // namespace

std::optional<std::string> make_lock_call(driver_world const& world, call_line const& call) {
  auto const& operation = call.operation;
  if (operation == "owner") return to_string(owner::this_thread());
  if (operation == "await_loss") return await_loss(world, call);
  auto const found = find_lock(world, call);
  if (operation == "lock") return lock(found, call);
  if (operation == "try_lock") return word(try_lock(found, call));
  if (operation == "unlock") {
    found.unlock();
    return "released";
  }
  if (operation == "force_unlock") return word(found.force_unlock());
  if (operation == "is_locked") return word(found.is_locked());
  if (operation == "is_held") return word(found.is_held_by_current_thread());
  if (operation == "hold_count") return std::to_string(found.hold_count());
  if (operation == "remaining") return remaining(found);
  return std::nullopt;
}

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

namespace {

// The holds of a worker, by the name of the lock.
std::map<std::string, lease>& holds() {
  thread_local std::map<std::string, lease> mine;
  return mine;
}

std::string text(release_result result) { return result == release_result::released ? "released" : "not held"; }

}  // namespace

std::optional<std::string> make_plain_call(driver_world const& world, call_line const& call) {
  auto const found = world.clients.front().get_plain_lock(call.name());
  auto const& operation = call.operation;
  if (operation == "acquire") {
    acquire_options options{.wait = call.time_at(0)};
    if (call.number_at(1) != -1) options.lease = call.time_at(1);
    auto got = found.acquire(options);
    bool const held(got);
    if (held) holds()[call.name()] = std::move(got);
    return word(held);
  }
  if (operation == "extend") return word(holds().at(call.name()).extend(call.time_at(0)));
  if (operation == "release") return text(holds().at(call.name()).release());
  if (operation == "is_locked") return word(found.is_locked());
  if (operation == "remaining") return remaining(found);
  return std::nullopt;
}

}  // namespace latchkey::test
