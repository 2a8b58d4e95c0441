#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace latchkey::test {

// A thread that does what it is given, one after the other: blocking calls own their locks as threads. It is never
// joined; it ends with the process.
class worker {
 public:
  worker() {
    std::thread([this] { run(); }).detach();
  }

  void execute(std::function<void()> task) {
    std::lock_guard const guard(mutex_);
    tasks_.push_back(std::move(task));
    more_.notify_one();
  }

 private:
  [[noreturn]] void run() {
    while (true) {
      std::unique_lock guard(mutex_);
      more_.wait(guard, [this] { return !tasks_.empty(); });
      auto const task = std::move(tasks_.front());
      tasks_.pop_front();
      guard.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace latchkey::test
