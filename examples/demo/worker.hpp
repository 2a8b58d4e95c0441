#pragma once

#include "shared_job.hpp"

#include <functional>

namespace demo {

// Descriptors that a worker inherits under fixed numbers.
inline constexpr int job_descriptor = 3;
inline constexpr int ready_descriptor = 4;
inline constexpr int go_descriptor = 5;

/// One worker process of a row.
class worker {
 public:
  worker(shared_job const& shared, std::uint32_t index) : shared_(shared), index_(index) {}

  shared_job const& shared() const { return shared_; }
  std::uint32_t share() const { return shared_->share_of(index_); }
  std::uint32_t index() const { return index_; }
  std::string socket_path() const { return shared_->socket_path.data(); }
  std::chrono::microseconds think() const { return std::chrono::microseconds(shared_->think_us); }
  worker_record& record() const { return shared_->workers[index_]; }

  /// Tells the coordinator that everything is connected, and returns when all workers are. Starts the CPU count.
  void ready_and_wait();
  /// Ends the CPU count.
  void finished();

 private:
  shared_job const& shared_;
  std::uint32_t index_;
  std::int64_t cpu_before_us_ = 0;
};

/// Runs the row of the inherited job; the exit code of the process.
int run_worker(std::uint32_t index);

// The ways of locking; each runs the worker's share of requests at a time until there are no more.
void run_no_lock(worker& self);
void run_recipe(worker& self);
void run_latchkey_threads(worker& self);
void run_latchkey_recursion(worker& self);
void run_latchkey_coroutines(worker& self);

}  // namespace demo
