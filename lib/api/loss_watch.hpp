#pragma once

#include <latchkey/error.hpp>
#include <latchkey/lease.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace latchkey::detail {

// What becomes of a hold's loss: a stop token asks to stop, and a callback of the user's is called.
class loss_watch {
 public:
  std::stop_token token() const { return stop_.get_token(); }

  // True: the loss was told before, and call_back() is due.
  bool set(lost_callback callback);
  void tell(error_code const& why);
  // Calls what was set, if it is told. Once.
  void call_back();
  // What was set is not called any more.
  void forget() noexcept;
  // Waits for a callback that is running, unless this is its own thread.
  void await_callback() noexcept;

 private:
  std::stop_source stop_;
  std::mutex mutex_;  // guards what follows; held for no call of anything else
  std::condition_variable changed_;
  std::optional<lost_callback> callback_;
  std::thread::id running_;  // who calls the callback
  std::optional<error_code> told_;
};

}  // namespace latchkey::detail
