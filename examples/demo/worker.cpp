#include "worker.hpp"

#include "rows.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>

namespace demo {
namespace {

std::int64_t cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto const microseconds = [](timeval const& t) { return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

void run(worker& self, way how) {
  switch (how) {
    case way::no_lock: return run_no_lock(self);
    case way::recipe: return run_recipe(self);
    case way::latchkey_threads: return run_latchkey_threads(self);
    case way::latchkey_coroutines: return run_latchkey_coroutines(self);
    case way::latchkey_recursion: return run_latchkey_recursion(self);
  }
}

}  // namespace

void worker::ready_and_wait() {
  char byte = 1;
  if (::write(ready_descriptor, &byte, 1) != 1) throw std::system_error(errno, std::generic_category(), "coordinator");
  // The coordinator closes its end when all workers are ready: the end of file starts them together.
  while (::read(go_descriptor, &byte, 1) < 0 && errno == EINTR) {
  }
  cpu_before_us_ = cpu_us();
}

void worker::finished() { record().cpu_us = cpu_us() - cpu_before_us_; }

int run_worker(std::uint32_t index) {
  auto const shared = shared_job::attach(job_descriptor);
  worker self(shared, index);
  try {
    run(self, all_rows()[shared->row].how);
    return 0;
  } catch (std::exception const& error) {
    note_error(self.record(), error.what());
    return 1;
  }
}

}  // namespace demo
