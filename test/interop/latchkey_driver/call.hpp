#pragma once

#include <latchkey/latchkey.hpp>
#include <support/event_log.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace latchkey::test {

// One line of input, as the Java driver reads it: NUMBER WORKER OPERATION KIND NAME[,NAME...] ARGUMENT...
struct call_line {
  std::string number;
  std::string worker;
  std::string operation;
  std::string kind;
  std::vector<std::string> names;
  std::vector<std::string> arguments;

  static call_line parse(std::string_view line);

  std::string const& name() const { return names.at(0); }
  bool has(std::size_t argument) const { return argument < arguments.size(); }
  long long number_at(std::size_t argument) const { return std::stoll(arguments.at(argument)); }
  std::chrono::milliseconds time_at(std::size_t argument) const {
    return std::chrono::milliseconds(number_at(argument));
  }
};

// So that a name is one word: what is no letter or digit becomes %XX.
std::string percent_encoded(std::string_view text);
std::string percent_decoded(std::string_view text);

// The parts between separators; of an empty text none.
std::vector<std::string> parts_of(std::string_view text, char separator);

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

// What the calls work with: one client for each server.
struct driver_world {
  std::vector<client> clients{};
  std::vector<std::string> uris{};
  event_log log{};
};

std::string word(bool value);

// The lock that a call names.
distributed_lock find_lock(driver_world const& world, call_line const& call);

// The time to live as PTTL says it, with -1 and -2.
std::string remaining(distributed_lock const& lock);

// Each makes the call and gives the word for the answer, or nothing if it knows no such kind.
std::optional<std::string> make_lock_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_plain_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_semaphore_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_permit_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_latch_call(driver_world const& world, call_line const& call);

// `turns KIND NAME KEYS TARGET MILLISECONDS MOST`: takes the lock again and again, each time reads the number at each
// key, adds one and writes it back, until the first number has reached the target, MOST turns were taken or the time is
// over. Answers four numbers: turns taken, locks that failed, turns in which reading or writing failed, unlocks that
// failed.
std::string take_turns(driver_world const& world, call_line const& call);

}  // namespace latchkey::test
