#pragma once

#include <engine/wake_flag.hpp>
#include <machine/operation.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <utility>

namespace latchkey::detail {

namespace asio = boost::asio;

// An operation with somebody who waits for its end.
struct call : operation {
  // The machine is done with it. Called outside the mutex, on any thread; may destroy the call.
  virtual void complete() noexcept = 0;
  // Would its handler run on this executor? Then a thread that runs that, outside the strand, may call complete_here()
  // instead.
  virtual bool completes_on(asio::any_io_executor const&) const noexcept { return false; }
  virtual void complete_here() { complete(); }

 protected:
  ~call() = default;
};

// Lives on the stack of a blocked thread.
struct blocking_call final : call {
  void complete() noexcept override { done.set(); }

  wake_flag done;
};

// The completed call that the thread which read its answer delivers itself, once it has left the strand: a way through
// the executor's queue costs a look at all of its sockets. While one lives, what is left on this thread is kept for it.
class own_delivery {
 public:
  // `where` runs this thread, and outlives this.
  explicit own_delivery(asio::any_io_executor const& where) noexcept : where_(where), outer_(innermost_) {
    innermost_ = this;
  }
  ~own_delivery() {
    close();
    if (call_) call_->complete();
  }
  own_delivery(own_delivery const&) = delete;
  own_delivery& operator=(own_delivery const&) = delete;

  // False: nobody delivers here, or another call already, or this one is for another executor.
  static bool leave(call& call) noexcept {
    if (!innermost_ || innermost_->call_ || !call.completes_on(innermost_->where_)) return false;
    innermost_->call_ = &call;
    return true;
  }

  // Outside the strand. What the handler throws comes out.
  void deliver() {
    close();
    if (call* const call = std::exchange(call_, nullptr)) call->complete_here();
  }

 private:
  void close() noexcept {
    if (innermost_ == this) innermost_ = outer_;
  }

  static inline thread_local own_delivery* innermost_ = nullptr;
  asio::any_io_executor const& where_;
  own_delivery* outer_;
  call* call_ = nullptr;
};

}  // namespace latchkey::detail
