#pragma once

#include <engine/wake_flag.hpp>
#include <machine/operation.hpp>

#include <boost/asio/any_io_executor.hpp>

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

}  // namespace latchkey::detail
