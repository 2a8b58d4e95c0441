#pragma once

#include <base/clock.hpp>
#include <engine/attachment.hpp>
#include <engine/boot_timer.hpp>
#include <engine/call.hpp>
#include <engine/direct_lane.hpp>
#include <engine/embedded_server.hpp>
#include <engine/executor_probe.hpp>
#include <engine/fork_guard.hpp>
#include <engine/io_thread.hpp>
#include <engine/step_batch.hpp>
#include <latchkey/config.hpp>
#include <latchkey/stats.hpp>
#include <machine/client_machine.hpp>
#include <wire/uri.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace latchkey::detail {

// A client's state, shared by its handles and leases: the machine, the mutex that guards it, and whatever performs
// what the machine asks for. Calls come in on any thread; sockets live in `transport`, on the strand.
class core : public std::enable_shared_from_this<core> {
 public:
  // Without an executor it gets a thread of its own.
  // \throws lock_error: what the constructors of client say.
  static std::shared_ptr<core> make(std::optional<asio::any_io_executor> executor, std::string_view uri, config given);

  ~core();
  core(core const&) = delete;
  core& operator=(core const&) = delete;

  config const& settings() const { return settings_; }
  target const& where() const { return where_; }
  std::string const& id() const { return id_; }
  asio::any_io_executor const& executor() const { return executor_; }
  // Keeps the executor running while a copy lives; fit for handlers even when the client is closed.
  asio::any_io_executor tracked_executor() const;
  // The same without the tracking.
  asio::any_io_executor handler_executor() const;
  executor_probe const& probe() const { return probe_; }

  // Is this process a child of the one that made the client? Then nothing else may be called.
  bool forked() const noexcept { return forks_.forked(); }
  // Would a blocking call on this thread wait for itself?
  bool inside() const noexcept { return probe_.inside(); }
  // When a call without a wait of its own ends at the latest.
  instant budget_end(instant start) const;

  // --- calls ---

  // Returns when it is completed; does the I/O itself if the direct lane is free. A stop cancels it.
  void run(blocking_call& one, std::stop_token const& stop = {});
  // Completes later, on another stack.
  void start(call& one);
  // The same with several, in one step: what they ask leaves together.
  void start(std::span<call* const> all);
  void cancel(call& one);
  // Ends it if its deadline has passed; answers the deadline, which may have moved on.
  instant expire(call& one);
  void drop(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold);
  bool holds(kind const& which, std::string_view name, std::uint64_t owner);
  stats snapshot();

  // Tells config::on_event.
  void report(note const& what) noexcept;
  // Runs a function on the client's executor, later.
  void post(std::function<void()> function);

  // The attachment with this identity; made first if there is none alive.
  std::shared_ptr<attachment> attached(std::string const& identity,
                                       std::function<std::shared_ptr<attachment>()> const& make);

  // --- the end ---

  // Initiates it, and waits for it if the client has a thread of its own that is not the calling one.
  void close() noexcept;
  void begin_close();
  // `done` runs when it is over, on any thread; at once if it is over already.
  void on_closed(std::function<void()> done);

  // --- transport ---

  // One locked call of the machine; `then` performs I/O before anything else is told. Never throws: where memory is
  // short the client ends.
  template <class Step, class Then>
  void step(Step&& locked, Then&& then) noexcept {
    step(spare_.take(), locked, then);
  }
  template <class Step>
  void step(Step&& locked) noexcept {
    step(std::forward<Step>(locked), [] {});
  }

  // A handler of the transport had no memory to go on; called by it.
  void handler_failed() noexcept;
  // A handler of the transport was lost, or its execution context is being destroyed.
  void handler_lost() noexcept;
  // The strand was given something, and there was no memory for it.
  void strand_failed() noexcept;
  // Has it ended, though sockets may be left?
  bool over();

  // Under the mutex: from inside a step.
  void turn_begins() { turn_posted_ = false; }
  void lane_opened(std::shared_ptr<direct_lane> lane) { lane_ = std::move(lane); }
  // Discards the lane if it is this one. Any thread, outside the mutex.
  void lane_closed(std::uint32_t serial);
  std::shared_ptr<direct_lane> lane();

  boot_timer& timer() { return timer_; }
  bool closing();
  // All sockets are closed.
  void finished() noexcept;
  // The execution context is being destroyed, and with it the transport: so is what waits for an answer.
  void executor_gone() noexcept;

 private:
  core(std::optional<asio::any_io_executor> executor, target where, config given);

  template <class Step, class Then>
  void step(std::unique_ptr<step_batch> batch, Step&& locked, Then&& then) noexcept {
    operation_list failed;
    bool broken = !batch;
    std::exception_ptr why;
    {
      std::scoped_lock const lock(mutex_);
      if (batch) try {
          locked(machine_, boot_now(), batch->todo);
          settle(*batch);
        } catch (...) {
          broken = true;
          why = std::current_exception();
          break_down(*batch, failed);
        }
    }
    // What was taken off the machine's hands before is told in any case.
    if (batch) {
      try {
        then();
      } catch (...) {
        broken = true;
        why = std::current_exception();
      }
      perform(*batch);
      spare_.give(std::move(batch));
    }
    if (broken) end_broken(failed, why);
  }
  // Throws what there is no memory for, before anything has begun.
  std::unique_ptr<step_batch> batch_for_start();
  void break_down(step_batch& batch, operation_list& failed) noexcept;
  void end_broken(operation_list& failed, std::exception_ptr const& why) noexcept;

  void settle(step_batch& batch);
  void settle_losses(step_batch& batch);
  void perform(step_batch& batch) noexcept;
  void post_io(step_batch const& batch);
  void begin_transport();
  void transport_failed(std::string text);
  // The calling thread's share of a call that goes by the direct lane.
  struct loan {
    std::shared_ptr<direct_lane> lane;
    std::uint32_t serial = 0;  // 0: not lent
    instant now{};
  };
  void start_locked(client_machine& machine, operation& one, bool may_borrow, instant now, actions& out, loan* taken);
  bool make_room(client_machine& machine, std::span<call* const> all, actions& out) noexcept;
  void drive(loan taken);
  void wait(blocking_call& one);
  void wait_for_close();
  void close_attachments() noexcept;
  void close_sockets() noexcept;
  void escaped(std::exception_ptr const& what) noexcept;
  void callback_failed(std::exception_ptr const& what) noexcept;

  fork_guard forks_;
  config settings_;
  target where_;
  std::unique_ptr<embedded_server> server_;
  std::string id_;
  std::unique_ptr<io_thread> thread_;
  asio::any_io_executor executor_;
  executor_probe probe_;
  boot_timer timer_;
  spare_batch spare_;
  std::atomic<bool> listener_failed_{false};

  std::mutex mutex_;  // guards what follows
  client_machine machine_;
  std::weak_ptr<transport> transport_;  // kept alive by its own pending operations
  std::shared_ptr<direct_lane> lane_;
  std::uint32_t lent_ = 0;  // serial of the lane that a caller has borrowed
  bool transport_made_ = false;
  bool turn_posted_ = false;
  bool closing_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  bool handler_lost_ = false;
  std::vector<std::function<void()>> on_closed_;
  std::map<std::string, std::weak_ptr<attachment>> attachments_;
  std::size_t sweep_attachments_at_ = 64;
};

}  // namespace latchkey::detail
