// Workers that take jobs in the order in which they asked: a fair lock serves first come, first served, over all
// processes. Usage: job_runner [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// What the lock protects: nothing here is atomic.
struct job_list {
  int next = 1;
  std::vector<int> done_by;
};

void wait_for_waiters(latchkey::client const& client, std::size_t count) {
  while (client.snapshot().waiting < count) std::this_thread::sleep_for(1ms);
}

// Each worker stands in the queue behind those who came before it.
std::vector<int> run_jobs(latchkey::client const& client, int workers) {
  job_list jobs;
  // [fair]
  auto const lock = client.get_fair_lock("jobs");
  auto const work = [&](int worker) {
    auto hold = lock.acquire();  // served in the order of arrival, whatever process the others are in
    jobs.done_by.push_back(worker);
    std::cout << "worker " << worker << " does job " << jobs.next++ << "\n";
  };
  // [/fair]

  auto first = lock.acquire();
  std::vector<std::future<void>> running;
  for (int worker = 1; worker <= workers; ++worker) {
    running.push_back(std::async(std::launch::async, work, worker));
    wait_for_waiters(client, static_cast<std::size_t>(worker));
  }
  first.release();
  for (auto& one : running) one.get();
  return jobs.done_by;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    bool const in_order = run_jobs(client, 5) == std::vector{1, 2, 3, 4, 5};
    std::cout << (in_order ? "in the order in which they came\n" : "not in order\n");
    return in_order ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "job_runner: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
