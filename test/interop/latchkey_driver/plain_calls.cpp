#include <interop/latchkey_driver/calls.hpp>

#include <map>

namespace latchkey::test {

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
