#pragma once

namespace latchkey::detail {

// Something of a higher floor that belongs to a client, is found there by its identity, and is told of its end.
class attachment {
 public:
  virtual ~attachment() = default;
  // All outside all mutexes, on any thread, perhaps more than once.
  // The client begins to close, on the calling thread; what is released from now on still leaves.
  virtual void closing() noexcept = 0;
  // The calling thread ends: what it holds by no lease is renewed no longer.
  virtual void thread_ended() noexcept = 0;
  // Nothing leaves any more.
  virtual void closed() noexcept = 0;
};

}  // namespace latchkey::detail
