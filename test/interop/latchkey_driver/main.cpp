#include <interop/latchkey_driver/call.hpp>
#include <support/raw_redis.hpp>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>

using namespace latchkey;
using namespace latchkey::test;

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

// The other half of the Java driver: does with latchkey what it is told, in the same lines. See Driver.java.

namespace {

void say(std::string const& line) {
  static std::mutex mutex;
  std::lock_guard const guard(mutex);
  std::cout << line << std::endl;
}

std::string result_of(driver_world const& world, call_line const& call) {
  if (call.operation == "turns") return take_turns(world, call);
  auto const made = call.kind == "semaphore"          ? make_semaphore_call(world, call)
                    : call.kind == "permit_semaphore" ? make_permit_call(world, call)
                    : call.kind == "plain_lock"       ? make_plain_call(world, call)
                    : call.kind == "count_down_latch" ? make_latch_call(world, call)
                                                      : make_lock_call(world, call);
  if (made) return *made;
  throw std::invalid_argument("no such operation: " + call.operation);
}

void answer(driver_world const& world, call_line const& call) {
  std::string result;
  try {
    result = "ok " + result_of(world, call);
  } catch (lock_error const& error) {
    result = "failed " + error.code().message() + " " + error.server_text();
  } catch (std::exception const& error) {
    result = std::string("failed ") + error.what();
  }
  auto const now = std::chrono::nanoseconds(clock::now().time_since_epoch()).count();
  say(call.number + " " + std::to_string(now) + " " + result);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: latchkey_interop_driver WATCHDOG_TIMEOUT_MS FAIR_LOCK_WAIT_TIMEOUT_MS URI...\n";
    return 2;
  }
  driver_world world;
  config settings;
  settings.local_turns = std::getenv("LATCHKEY_INTEROP_TURNS") != nullptr;
  settings.lock_watchdog_timeout = milliseconds(std::stoll(argv[1]));
  if (auto const wait = milliseconds(std::stoll(argv[2])); wait.count() > 0) settings.fair_lock_wait_timeout = wait;
  settings.client_name = "latchkey";
  settings.on_event = [log = world.log.callback()](event const& what) {
    if (what.type == event_type::lost) log(what);
  };
  std::string ready = "ready";
  for (int i = 3; i < argc; ++i) {
    world.uris.emplace_back(argv[i]);
    world.clients.emplace_back(argv[i], settings);
    ready += " " + world.clients.back().id();
  }
  say(ready);
  std::map<std::string, std::unique_ptr<worker>> workers;
  for (std::string line; std::getline(std::cin, line);) {
    auto call = call_line::parse(line);
    auto& one = workers[call.worker];
    if (!one) one = std::make_unique<worker>();
    one->execute([&world, call = std::move(call)] { answer(world, call); });
  }
  // Without a close: what is held when the input ends is to be found as a process leaves it that dies.
  ::_exit(0);
}
