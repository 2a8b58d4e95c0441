// At most three calls of a service at a time, over all processes. A permit has a lease: what a crashed process held
// comes back by itself. Usage: call_limit [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int most_at_a_time = 3;

std::atomic<int> now{0};
std::atomic<int> most{0};

void call_the_service() {
  int const calls = ++now;
  for (int seen = most; seen < calls && !most.compare_exchange_weak(seen, calls);) {
  }
  std::this_thread::sleep_for(20ms);
  --now;
}

void run_calls(latchkey::client const& client) {
  // [permit]
  auto const calls = client.get_permit_semaphore("calls");
  static_cast<void>(calls.try_set_permits(most_at_a_time));  // by whoever comes first
  auto const limited_call = [&] {
    auto const permit = calls.acquire_permit({.lease = 10s});
    call_the_service();
  };  // given back here
  // [/permit]
  std::vector<std::jthread> callers;
  for (int i = 0; i < 20; ++i) callers.emplace_back(limited_call);
}

// A permit that nobody gives back is free again when its lease is over.
bool comes_back(latchkey::client const& client) {
  auto const calls = client.get_permit_semaphore("calls");
  for (int i = 0; i < most_at_a_time; ++i) static_cast<void>(calls.acquire(200ms));
  return !calls.try_acquire() && calls.try_acquire(5s);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    run_calls(client);
    std::cout << "20 calls, never more than " << most << " at a time\n";
    bool const back = comes_back(client);
    std::cout << (back ? "forgotten permits came back\n" : "forgotten permits did not come back\n");
    return most <= most_at_a_time && back ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "call_limit: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
