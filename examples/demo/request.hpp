#pragma once

#include "shared_job.hpp"

#include <chrono>
#include <optional>

namespace demo {

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

}  // namespace demo
