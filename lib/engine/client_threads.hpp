#pragma once

#include <engine/deliveries.hpp>
#include <engine/guards.hpp>
#include <engine/io_thread.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace latchkey::detail {

namespace asio = boost::asio;

// Is the calling thread inside this executor? Then a blocking call would wait for its own thread. Executors of kinds
// that cannot be asked are known by a mark that is set around the client's own handlers.
class executor_probe {
 public:
  explicit executor_probe(asio::any_io_executor const& executor);

  using question = bool (*)(asio::any_io_executor const&);

  bool inside() const noexcept;

  // Marks the calling thread while a handler runs there.
  class mark {
   public:
    explicit mark(executor_probe const& probe) noexcept;
    ~mark();
    mark(mark const&) = delete;
    mark& operator=(mark const&) = delete;

   private:
    friend class executor_probe;
    executor_probe const* probe_;
    mark* outer_;
  };

 private:
  asio::any_io_executor executor_;
  question asks_;
};

// Where the I/O, the handlers and the callbacks of a client run: on the executor that it was given, or on two threads
// of its own.
class client_threads {
 public:
  client_threads(std::optional<asio::any_io_executor> given, fork_guard const& forks);

  // Of its own threads. `escaped` is told what a callback let escape.
  void start(std::function<void(std::exception_ptr)> const& escaped);
  bool own() const { return thread_ != nullptr; }
  bool on_own_thread() const { return thread_ && (thread_->on_thread() || callbacks_->on_thread()); }
  // They end when what was handed to them is done.
  void finish();
  // False: a callback has not come back by `end`.
  bool join_until(instant end);

  asio::any_io_executor const& executor() const { return executor_; }
  // Where handlers without an executor of their own and callbacks run. Keeps it running while a copy lives; fit for
  // handlers even when the client is closed.
  asio::any_io_executor tracked_executor() const;
  // The same without the tracking.
  asio::any_io_executor handler_executor() const;
  bool is_handler_executor(asio::any_io_executor const& given) const {
    return callbacks_ ? given == handler_executor() : given == executor_;
  }
  // The same two for what is the library's own, which no callback may delay.
  asio::any_io_executor tracked_io_executor() const;
  asio::any_io_executor io_executor() const;
  // Do handlers run where the sockets are? Else on a thread of their own.
  bool handlers_beside_io() const noexcept { return !callbacks_; }
  bool callbacks_finishing() const { return callbacks_ && callbacks_->finishing(); }

  // The calls that are over, on the way to their handlers.
  deliveries& completed() const { return *completed_; }

  executor_probe const& probe() const { return probe_; }
  // Would a blocking call on this thread wait for itself?
  bool inside() const noexcept { return probe_.inside() || (callbacks_ && callbacks_->on_thread()); }

 private:
  fork_guard const& forks_;
  std::unique_ptr<io_thread> thread_;
  std::unique_ptr<io_thread> callbacks_;  // only beside thread_
  asio::any_io_executor executor_;
  executor_probe probe_;
  std::shared_ptr<deliveries> const completed_ = std::make_shared<deliveries>();
};

}  // namespace latchkey::detail
