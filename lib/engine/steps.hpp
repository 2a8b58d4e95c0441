#pragma once

#include <base/clock.hpp>
#include <engine/boot_timer.hpp>
#include <engine/client_end.hpp>
#include <engine/event_teller.hpp>
#include <engine/guards.hpp>
#include <engine/loss_listener.hpp>
#include <machine/actions.hpp>
#include <machine/client_machine.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
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
    std::unique_ptr<step_batch> batch(kept_.exchange(nullptr, std::memory_order_acquire));
    return batch ? std::move(batch) : std::make_unique<step_batch>();
  }
  void give(std::unique_ptr<step_batch> batch) {
    batch->clear();
    delete kept_.exchange(batch.release(), std::memory_order_acq_rel);
  }

 private:
  std::atomic<step_batch*> kept_{nullptr};
};

// Told by the steps, outside the mutex, and seldom.
class steps_user {
 public:
  // Sockets and the timer are wanted: the transport is to be made, on the executor.
  virtual void begin_io() = 0;
  virtual void tell_loss(std::shared_ptr<loss_listener> const& holder, error_code const& why) = 0;
  // Nothing is left to be said, and there never was a socket.
  virtual void finished() noexcept = 0;

 protected:
  ~steps_user() = default;
};

// The machine of a client, the mutex that guards it, and what its steps leave to be done outside.
class steps {
 public:
  steps(config const& settings, client_machine::identity who, client_end& end, event_teller& events, steps_user& user)
      : machine_(settings, std::move(who)), end_(end), events_(events), user_(user) {}

  // One locked call of the machine; `then` performs I/O before anything else is told. What it left half done could not
  // be known: where memory is short in the middle the process ends, and leases end by themselves.
  template <class Step, class Then>
  void take(Step&& locked, Then&& then) noexcept {
    take(spare_.take(), {}, locked, then);
  }
  template <class Step>
  void take(Step&& locked) noexcept {
    take(spare_.take(), {}, locked, [] {});
  }
  // In two parts: where there is no memory for the first nothing has begun. `at`: when the caller looked at the clock,
  // just before; zero: he did not.
  std::unique_ptr<step_batch> prepare() { return spare_.take(); }
  template <class Step, class Then>
  void take(std::unique_ptr<step_batch> batch, instant at, Step&& locked, Then&& then) noexcept {
    uncancelled const whole;
    {
      std::scoped_lock const lock(mutex_);
      now_ = std::max(now_, at == instant{} ? boot_now() : at);
      locked(machine_, now_, batch->todo);
      resolve(*batch);
    }
    then();
    perform(*batch);
    spare_.give(std::move(batch));
  }

  // What needs the mutex and is no step.
  template <class Look>
  auto look(Look&& locked) {
    std::scoped_lock const lock(mutex_);
    return locked(machine_);
  }

  // --- the transport ---
  boot_timer& timer() { return timer_; }
  // From inside a step.
  void turn_begins() { turn_posted_ = false; }
  std::shared_ptr<transport> io() const { return io_.lock(); }
  // False: the end is too near.
  bool io_made(std::shared_ptr<transport> const& made);
  // The next step that needs it tries again. False: the end is too near for that.
  bool io_failed();

 private:
  void resolve(step_batch& batch);
  static void resolve_losses(step_batch& batch);
  void perform(step_batch& batch) noexcept;
  void post_io(step_batch const& batch);

  boot_timer timer_;
  spare_batch spare_;
  std::mutex mutex_;  // guards what follows, and what others say that it guards
  instant now_{};     // of the last step: time does not run backwards
  client_machine machine_;
  client_end& end_;
  event_teller& events_;
  steps_user& user_;
  std::weak_ptr<transport> io_;  // kept alive by its own pending operations
  bool io_wanted_ = false;
  bool turn_posted_ = false;
};

}  // namespace latchkey::detail
