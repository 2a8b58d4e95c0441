#pragma once

#include <chrono>

namespace latchkey::test {

// What threads have cost since they began.
struct thread_cost {
  long threads = 0;
  long voluntary = 0;  // how often one of them went to sleep by itself
  long involuntary = 0;
  std::chrono::microseconds cpu{0};
};

// Of all threads of this process but the calling one. Threads that ended are not counted.
thread_cost cost_of_other_threads();

}  // namespace latchkey::test
