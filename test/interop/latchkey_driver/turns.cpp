#include <interop/latchkey_driver/calls.hpp>
#include <support/raw_redis.hpp>

namespace latchkey::test {

std::string take_turns(driver_world const& world, call_line const& call) {
  auto const lock = find_lock(world, call);
  auto const& uri = world.uris.front();
  raw_redis server(endpoint{{}, static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)))});
  auto const& key = call.arguments.at(0);
  long long taken = 0;
  long long failed = 0;
  for (long long i = 0; i < call.number_at(1); ++i) {
    try {
      lock.lock();
    } catch (lock_error const&) {
      ++failed;
      continue;
    }
    auto const before = server.ok("GET", key);
    server.ok("SET", key, before.text.empty() ? 1 : std::stoll(before.text) + 1);
    ++taken;
    try {
      lock.unlock();
    } catch (lock_error const&) {
      ++failed;
    }
  }
  return std::to_string(taken) + " " + std::to_string(failed);
}

}  // namespace latchkey::test
