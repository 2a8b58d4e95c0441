#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace demo {

/// What became of one request.
enum class request_state : std::uint32_t {
  not_started,
  waiting,  ///< for the lock
  serving,  ///< holds the lock
  done,
  gave_up,  ///< the time of the row was over before it had the lock
  lost,     ///< its lock was lost while it worked
  failed,   ///< an error, see `worker_record::error`
};

/// Times are nanoseconds on the steady clock, which all processes of a machine share.
struct request_record {
  std::atomic<request_state> state;
  std::uint32_t bought;
  std::int64_t started_ns;
  std::int64_t granted_ns;
  std::int64_t ended_ns;
};

struct worker_record {
  std::int64_t cpu_us;
  std::atomic<bool> has_error;
  std::array<char, 240> error;
};

/// What the coordinator tells the workers, and what they write down; lives in memory that all of them map.
struct job {
  static constexpr std::size_t most_workers = 64;

  std::uint32_t row;
  std::uint32_t processes;
  std::uint32_t concurrency;
  std::uint32_t requests;
  std::int64_t think_us;
  std::int64_t limit_ns;
  std::int64_t go_ns;
  std::array<char, 108> socket_path;
  std::atomic<std::uint32_t> next;
  std::atomic<std::uint32_t> done;
  std::array<worker_record, most_workers> workers;

  std::int64_t deadline_ns() const { return go_ns + limit_ns; }
  /// How many requests at a time this worker runs.
  std::uint32_t share_of(std::uint32_t worker) const {
    return concurrency / processes + (worker < concurrency % processes ? 1 : 0);
  }
};

static_assert(std::atomic<request_state>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

inline std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A job and its request records in shared memory. The coordinator makes it; workers inherit the descriptor.
class shared_job {
 public:
  /// New, all zero.
  explicit shared_job(std::uint32_t requests);
  /// The one behind an inherited descriptor.
  static shared_job attach(int descriptor);
  shared_job(shared_job&& other) noexcept;
  shared_job& operator=(shared_job&&) = delete;
  ~shared_job();

  int descriptor() const { return descriptor_; }
  job& operator*() const { return *job_; }
  job* operator->() const { return job_; }
  std::span<request_record> requests() const { return {records_, job_->requests}; }

 private:
  shared_job() = default;
  void map(std::size_t size);

  int descriptor_ = -1;
  std::size_t size_ = 0;
  job* job_ = nullptr;
  request_record* records_ = nullptr;
};

/// Notes the first error of a worker; later ones are mostly its consequences.
void note_error(worker_record& worker, std::string const& text);

}  // namespace demo
