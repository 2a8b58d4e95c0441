#pragma once

#include <engine/client_threads.hpp>
#include <engine/event_queue.hpp>
#include <latchkey/config.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <vector>

namespace latchkey::detail {

// Tells config::on_event: on the calling thread, or, for a client with threads of its own, on the one for callbacks.
class event_teller {
 public:
  // `post` makes that thread call deliver().
  event_teller(config const& settings, client_threads const& threads, std::function<void()> post)
      : settings_(settings), threads_(threads), post_(std::move(post)) {}

  // Under the client's mutex, so that events of steps that are taken one after the other are told in that order. True:
  // somebody is to call deliver_soon(), outside. What is not taken over is to be reported, one by one.
  bool push(std::vector<note>& notes) noexcept { return threads_.own() && queue_.push(notes); }
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
