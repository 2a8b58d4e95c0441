#pragma once

#include <engine/loss_listener.hpp>
#include <machine/actions.hpp>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace latchkey::detail {

class transport;

// What one step under the mutex left to be done outside.
struct step_batch {
  actions todo;
  std::vector<std::pair<std::shared_ptr<loss_listener>, error_code>> lost;
  std::shared_ptr<transport> io;  // where to post; null: not made yet, or gone
  instant wake = never;
  bool events = false;    // somebody is to deliver what is queued
  bool turn = false;      // post a turn to `io`
  bool birth = false;     // make the transport first
  bool finish = false;    // nothing is left to be said: close the sockets of `io`
  bool finished = false;  // the same, and there never was a socket

  void clear() {
    todo.clear();
    lost.clear();
    io.reset();
    events = turn = birth = finish = finished = false;
  }
};

// Keeps one batch, so that steady work does not allocate its vectors again and again.
class spare_batch {
 public:
  spare_batch() = default;
  ~spare_batch() { delete kept_.load(); }
  spare_batch(spare_batch const&) = delete;
  spare_batch& operator=(spare_batch const&) = delete;

  std::unique_ptr<step_batch> take() {
    std::unique_ptr<step_batch> one(kept_.exchange(nullptr, std::memory_order_acquire));
    return one ? std::move(one) : std::make_unique<step_batch>();
  }
  void give(std::unique_ptr<step_batch> one) {
    one->clear();
    delete kept_.exchange(one.release(), std::memory_order_acq_rel);
  }

 private:
  std::atomic<step_batch*> kept_{nullptr};
};

}  // namespace latchkey::detail
