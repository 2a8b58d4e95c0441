#pragma once

#include <engine/wake_flag.hpp>
#include <machine/operation.hpp>

namespace latchkey::detail {

// An operation with somebody who waits for its end.
struct call : operation {
  // The machine is done with it. Called outside the mutex, on any thread; may destroy the call.
  virtual void complete() noexcept = 0;

 protected:
  ~call() = default;
};

// Lives on the stack of a blocked thread.
struct blocking_call final : call {
  void complete() noexcept override { done.set(); }

  wake_flag done;
};

}  // namespace latchkey::detail
