#pragma once

#include <engine/attachments.hpp>
#include <engine/call.hpp>
#include <engine/client_end.hpp>
#include <engine/client_threads.hpp>
#include <engine/direct_lane.hpp>
#include <engine/embedded_server.hpp>
#include <engine/event_teller.hpp>
#include <engine/guards.hpp>
#include <engine/loans.hpp>
#include <engine/steps.hpp>
#include <engine/tls.hpp>
#include <latchkey/config.hpp>
#include <latchkey/stats.hpp>
#include <wire/uri.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace latchkey::detail {

// A client's state, shared by its handles and leases: what they ask of it, and how it ends. Calls come in on any
// thread; sockets live in `transport`, on the strand.
class core final : public std::enable_shared_from_this<core>, private steps_user {
 public:
  struct destination {
    target where;
    std::unique_ptr<tls_context> tls;           // null: plain text
    std::unique_ptr<tls_context> sentinel_tls;  // null: sentinels are spoken to in the same way

    tls_context* tls_for(role as) const;
  };

  // Without an executor it gets a thread of its own.
  // \throws lock_error: what the constructors of client say.
  static std::shared_ptr<core> make(std::optional<asio::any_io_executor> executor, std::string_view uri, config given);

  ~core();
  core(core const&) = delete;
  core& operator=(core const&) = delete;

  config const& settings() const { return settings_; }
  destination const& server() const { return to_; }
  std::string const& id() const { return id_; }
  client_threads const& threads() const { return threads_; }
  steps& machine_steps() { return steps_; }
  // From inside a step, or a look.
  loans<direct_lane>& lanes() { return lanes_; }

  // Is this process a child of the one that made the client? Then nothing else may be called.
  bool forked() const noexcept { return forks_.forked(); }
  // When a call without a wait of its own ends at the latest.
  instant budget_end(instant start) const { return after(start, budget_); }

  // --- calls ---

  // Returns when it is completed; does the I/O itself if the direct lane is free. A stop cancels it.
  void run(blocking_call& waiting, std::stop_token const& stop = {});
  // Completes later, on another stack.
  void start(call& call);
  // The same with several, in one step: what they ask leaves together. With `may_borrow` their caller is blocked on
  // this thread, and does the I/O himself if a lane is lent to him: then he is to drive the loan until `end`, or until
  // `done` says that he waits no longer, and keeps the calls as long.
  using loan = loans<direct_lane>::loan;
  loan start(std::span<call* const> all, bool may_borrow = false);
  void drive(loan taken, instant end, wake_flag const& done) noexcept;
  void cancel(call& call);
  // Ends it if its deadline has passed; answers the deadline, which may have moved on.
  instant expire(call& call);
  // The calling thread ends while it may hold something by no lease.
  void thread_ended() noexcept;
  // Of leases that this client does not hold itself, and whose release its end awaits: so many more.
  void await_lease(int more);
  stats snapshot();

  // Tells config::on_event.
  void report(note const& what) noexcept { events_.report(what); }
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

  // --- the transport ---

  // Shuts the lane if it is this one; `abruptly`: nothing more of what was said on it arrives. Any thread, outside the
  // mutex.
  void lane_closed(std::uint32_t serial, bool abruptly = false);
  bool closing();
  // All sockets are closed.
  void finished() noexcept override;
  // The execution context is being destroyed, and with it the transport: so is what waits for an answer.
  void executor_gone() noexcept;

 private:
  core(std::optional<asio::any_io_executor> executor, target const& where, config given);

  void begin_io() override;
  void tell_loss(std::shared_ptr<loss_listener> const& holder, error_code const& why) override;
  void begin_transport() noexcept;
  void post_on(asio::any_io_executor const& where, std::function<void()> function);
  loan start_all(std::span<operation* const> calls, bool may_borrow, instant at);
  void wait(blocking_call& call) noexcept;
  void wait_for_close();
  void tell_attachments(void (attachment::*what)() noexcept);

  fork_guard forks_;
  config settings_;
  nanoseconds const budget_;
  destination to_;
  std::unique_ptr<embedded_server> server_;
  std::string id_;
  client_threads threads_;
  event_teller events_;
  client_end end_;
  steps steps_;
  loans<direct_lane> lanes_;
  attachments attachments_;
};

}  // namespace latchkey::detail
