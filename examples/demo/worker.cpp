#include "worker.hpp"
#include "options.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace demo {

namespace {

// Both are plain data and good when all zero, which is what a new memory file contains.
constexpr std::size_t records_offset = (sizeof(job) + 63) / 64 * 64;

[[noreturn]] void fail(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

shared_job::shared_job(std::uint32_t requests) : descriptor_(::memfd_create("latchkey-demo", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("cannot make shared memory");
  auto const size = records_offset + requests * sizeof(request_record);
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail("cannot make shared memory");
  map(size);
  job_->requests = requests;
}

shared_job shared_job::attach(int descriptor) {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) fail("no shared memory");
  shared_job result;
  result.descriptor_ = descriptor;
  result.map(static_cast<std::size_t>(file.st_size));
  return result;
}

shared_job::shared_job(shared_job&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      job_(std::exchange(other.job_, nullptr)),
      records_(std::exchange(other.records_, nullptr)) {}

shared_job::~shared_job() {
  if (job_) ::munmap(job_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void shared_job::map(std::size_t size) {
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  size_ = size;
  job_ = static_cast<job*>(memory);
  records_ = reinterpret_cast<request_record*>(static_cast<std::byte*>(memory) + records_offset);
}

void note_error(worker_record& worker, std::string const& text) {
  if (worker.has_error.exchange(true)) return;
  auto const length = std::min(text.size(), worker.error.size() - 1);
  std::copy_n(text.begin(), length, worker.error.begin());
}

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
