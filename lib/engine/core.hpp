#pragma once

#include <base/clock.hpp>
#include <engine/attachment.hpp>
#include <engine/boot_timer.hpp>
#include <engine/call.hpp>
#include <engine/direct_lane.hpp>
#include <engine/embedded_server.hpp>
#include <engine/event_queue.hpp>
#include <engine/executor_probe.hpp>
#include <engine/fork_guard.hpp>
#include <engine/io_thread.hpp>
#include <engine/step_batch.hpp>
#include <engine/uncancelled.hpp>
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
  // Where handlers without an executor of their own and callbacks run. Keeps it running while a copy lives; fit for
  // handlers even when the client is closed.
  asio::any_io_executor tracked_executor() const;
  // The same without the tracking.
  asio::any_io_executor handler_executor() const;
  // The same two for what is the library's own, which no callback may delay.
  asio::any_io_executor tracked_io_executor() const;
  asio::any_io_executor io_executor() const;
  // Do handlers run where the sockets are? Else on a thread of their own.
  bool handlers_beside_io() const noexcept { return !callbacks_; }
  executor_probe const& probe() const { return probe_; }

  // Is this process a child of the one that made the client? Then nothing else may be called.
  bool forked() const noexcept { return forks_.forked(); }
  // Would a blocking call on this thread wait for itself?
  bool inside() const noexcept { return probe_.inside() || (callbacks_ && callbacks_->on_thread()); }
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
  // The calling thread ends while it may hold something by no lease.
  void thread_ended() noexcept;
  // Of leases that this client does not hold itself, and whose release its end awaits: so many more.
  void await_lease(int more);
  void renew_no_longer(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold);
  bool keeps_out(kind const& which, std::string_view name, std::uint64_t owner, unsigned char mode);
  stats snapshot();

  // Tells config::on_event.
  void report(note const& what) noexcept;
  // Runs a function later, where callbacks run.
  void post(std::function<void()> function);

  // The attachment with this identity; made first if there is none alive.
  std::shared_ptr<attachment> attached(std::string const& identity,
                                       std::function<std::shared_ptr<attachment>()> const& make);

  // --- the end ---

  // Initiates it, and waits for it if the client has a thread of its own that is not the calling one.
  void close() noexcept;
  // Releases what the calling thread holds by no lease.
  void begin_close();
  // `done` runs when it is over, on any thread; at once if it is over already.
  void on_closed(std::function<void()> done);
  bool over();

  // --- transport ---

  // One locked call of the machine; `then` performs I/O before anything else is told. What it left half done could not
  // be known: where memory is short in the middle the process ends, and leases end by themselves.
  template <class Step, class Then>
  void step(Step&& locked, Then&& then) noexcept {
    step(spare_.take(), locked, then);
  }
  template <class Step>
  void step(Step&& locked) noexcept {
    step(std::forward<Step>(locked), [] {});
  }

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
    uncancelled const whole;
    {
      std::scoped_lock const lock(mutex_);
      locked(machine_, boot_now(), batch->todo);
      resolve(*batch);
    }
    then();
    perform(*batch);
    spare_.give(std::move(batch));
  }

  void resolve(step_batch& batch);
  void resolve_losses(step_batch& batch);
  void perform(step_batch& batch) noexcept;
  void post_io(step_batch const& batch);
  void post_losses(step_batch& batch);
  void post_on(asio::any_io_executor const& where, std::function<void()> function);
  void tell_listener(note const& what) noexcept;
  void deliver_events() noexcept;
  void deliver_events_soon() noexcept;
  void begin_transport() noexcept;
  void transport_failed(std::string text);
  // The calling thread's share of a call that goes by the direct lane.
  struct loan {
    std::shared_ptr<direct_lane> lane;
    std::uint32_t serial = 0;  // 0: not lent
    instant now{};
  };
  void start_locked(client_machine& machine, operation& one, bool may_borrow, instant now, actions& out, loan* taken);
  bool make_room(client_machine& machine, std::span<call* const> all, actions& out) noexcept;
  void drive(loan taken, blocking_call const& one) noexcept;
  void wait(blocking_call& one) noexcept;
  void wait_for_close();
  void tell_attachments(void (attachment::*what)() noexcept);
  void callback_failed(std::exception_ptr const& what) noexcept;

  fork_guard forks_;
  config settings_;
  target where_;
  std::unique_ptr<embedded_server> server_;
  std::string id_;
  std::unique_ptr<io_thread> thread_;
  std::unique_ptr<io_thread> callbacks_;  // only beside thread_
  event_queue events_;
  asio::any_io_executor executor_;
  executor_probe probe_;
  boot_timer timer_;
  spare_batch spare_;
  std::atomic<bool> listener_failed_{false};

  std::mutex mutex_;  // guards what follows
  client_machine machine_;
  std::weak_ptr<transport> transport_;  // kept alive by its own pending operations
  std::shared_ptr<direct_lane> lane_;
  std::uint32_t lent_ = 0;               // serial of the lane that a caller has borrowed
  operation const* borrower_ = nullptr;  // for which call, while it is lent
  bool transport_made_ = false;
  bool turn_posted_ = false;
  bool closing_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  std::vector<std::function<void()>> on_closed_;
  std::map<std::string, std::weak_ptr<attachment>> attachments_;
  std::size_t sweep_attachments_at_ = 64;
};

}  // namespace latchkey::detail
