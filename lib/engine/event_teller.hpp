#pragma once

#include <engine/client_threads.hpp>
#include <latchkey/config.hpp>
#include <machine/actions.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace latchkey::detail {

// Events on their way to config::on_event on another thread, in their order. Bounded: where the listener is too slow
// the newest are left out, and a warning says how many; ends of holds only when many more wait.
class event_queue {
 public:
  static constexpr std::size_t most = 4'096, most_with_ends = 16 * most;

  // Takes them over. True: nobody is delivering, and the caller is to see to that.
  bool push(std::vector<note>& notes) noexcept;
  // The next for whoever delivers; none: there is nothing left, and he delivers no longer.
  std::optional<note> next();
  // Whoever waits for the listener has no more time: what has not been delivered is left out.
  void abandon() noexcept;

 private:
  void add(note& note) noexcept;

  std::mutex mutex_;
  std::deque<note> notes_;
  std::size_t left_out_ = 0;
  bool delivering_ = false;
};

// Tells config::on_event: on the calling thread, or, for a client with threads of its own, on the one for callbacks.
class event_teller {
 public:
  // `post` makes that thread call deliver().
  event_teller(config const& settings, client_threads const& threads, std::function<void()> post)
      : settings_(settings), threads_(threads), post_(std::move(post)) {}

  // Under the client's mutex, so that events of steps that are taken one after the other are told in that order. True:
  // somebody is to call deliver_soon(), outside. What is not taken over is to be reported, one by one.
  bool push(std::vector<note>& notes) noexcept { return !notes.empty() && threads_.own() && queue_.push(notes); }
  void deliver_soon() noexcept;
  void deliver() noexcept;
  void report(note const& what) noexcept;
  void callback_failed(std::exception_ptr const& what) noexcept;
  void abandon() noexcept { queue_.abandon(); }

 private:
  void tell(note const& what) noexcept;

  config const& settings_;
  client_threads const& threads_;
  std::function<void()> post_;
  event_queue queue_;
  std::atomic<bool> listener_failed_{false};
};

}  // namespace latchkey::detail
