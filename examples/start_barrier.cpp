// Workers that start together: each tells a latch that it is ready, and waits until all are.
// Usage: start_barrier [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int workers = 8;

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    std::atomic<int> ready{0};
    std::atomic<int> too_early{0};
    // [latch]
    auto const latch = client.get_count_down_latch("start");
    static_cast<void>(latch.try_set_count(workers));  // by whoever comes first
    auto const work = [&] {
      ++ready;
      latch.count_down();
      if (!latch.wait_for(10s)) return;
      // All workers are ready, in whatever process they run.
      if (ready != workers) ++too_early;
    };
    // [/latch]
    {
      std::vector<std::jthread> all;
      for (int i = 0; i < workers; ++i) all.emplace_back(work);
    }
    std::cout << ready << " workers, " << too_early << " of them started too early\n";
    return ready == workers && too_early == 0 && latch.count() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "start_barrier: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
