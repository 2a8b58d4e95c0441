#include <interop/latchkey_driver/calls.hpp>
#include <support/raw_redis.hpp>

namespace latchkey::test {

std::string take_turns(driver_world const& world, call_line const& call) {
  auto const lock = find_lock(world, call);
  auto const& uri = world.uris.front();
  raw_redis server(endpoint{{}, static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)))});
  auto const keys = parts_of(call.arguments.at(0), ',');
  auto const number = [&](std::string const& key) {
    auto const text = server.ok("GET", key).text;
    return text.empty() ? 0 : std::stoll(text);
  };
  auto const end = clock::now() + call.time_at(2);
  long long taken = 0;
  long long failed_locks = 0;
  long long failed_unlocks = 0;
  auto const most = call.number_at(3);
  for (bool reached = false; !reached && taken < most && clock::now() < end;) {
    try {
      lock.lock();
    } catch (lock_error const&) {
      ++failed_locks;
      continue;
    }
    auto const before = number(keys.front());
    reached = before >= call.number_at(1);
    if (!reached) {
      server.ok("SET", keys.front(), before + 1);
      for (std::size_t i = 1; i < keys.size(); ++i) server.ok("SET", keys[i], number(keys[i]) + 1);
      ++taken;
    }
    try {
      lock.unlock();
    } catch (lock_error const&) {
      ++failed_unlocks;
    }
  }
  return std::to_string(taken) + " " + std::to_string(failed_locks) + " 0 " + std::to_string(failed_unlocks);
}

}  // namespace latchkey::test
