#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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
  std::array<char, 108> socket_path;  // of the stock
  std::array<char, 256> locks;        // a URI
  bool synced;                        // replicas have it before a grant is told
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

/// One request: writes down what becomes of it.
class request {
 public:
  request(job& all, request_record& record) : job_(&all), record_(&record) {
    record.started_ns = now_ns();
    set(request_state::waiting);
  }

  /// It has the lock.
  void granted() {
    record_->granted_ns = now_ns();
    set(request_state::serving);
  }
  /// It was told that it bought, or that there is nothing left.
  void done(bool bought) {
    record_->bought = bought ? 1 : 0;
    end(request_state::done);
    job_->done.fetch_add(1);
  }
  void gave_up() { end(request_state::gave_up); }
  void lost() { end(request_state::lost); }
  void failed() { end(request_state::failed); }

  /// What is left of the time of this row; zero or less: it is over.
  std::chrono::nanoseconds time_left() const { return std::chrono::nanoseconds(job_->deadline_ns() - now_ns()); }
  /// The same, rounded up: a wait of 0 ms would be a single attempt without an end of the time.
  std::chrono::milliseconds ms_left() const { return std::chrono::ceil<std::chrono::milliseconds>(time_left()); }

 private:
  void set(request_state state) { record_->state.store(state, std::memory_order_release); }
  void end(request_state state) {
    record_->ended_ns = now_ns();
    set(state);
  }

  job* job_;
  request_record* record_;
};

/// The next request of the row; empty if there are no more, or the time is over.
inline std::optional<request> next_request(shared_job const& shared) {
  if (now_ns() >= shared->deadline_ns()) return std::nullopt;
  auto const number = shared->next.fetch_add(1);
  if (number >= shared->requests) return std::nullopt;
  return request(*shared, shared.requests()[number]);
}

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
  std::string locks() const { return shared_->locks.data(); }
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
