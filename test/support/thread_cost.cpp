#include <support/thread_cost.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace latchkey::test {

namespace {

void add(thread_cost& sum, std::filesystem::path const& task) {
  std::ifstream status(task / "status");
  std::string word;
  while (status >> word) {
    long value = 0;
    if (word == "voluntary_ctxt_switches:" && status >> value) sum.voluntary += value;
    if (word == "nonvoluntary_ctxt_switches:" && status >> value) sum.involuntary += value;
  }
  // The first number of schedstat is the time on a core, in nanoseconds.
  long long nanoseconds = 0;
  std::ifstream(task / "schedstat") >> nanoseconds;
  sum.cpu += std::chrono::microseconds(nanoseconds / 1'000);
  ++sum.threads;
}

}  // namespace

thread_cost cost_of_other_threads() {
  thread_cost sum;
  auto const own = std::to_string(::gettid());
  for (auto const& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (task.path().filename() != own) add(sum, task.path());
  return sum;
}

}  // namespace latchkey::test
