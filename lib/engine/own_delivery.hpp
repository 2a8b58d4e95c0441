#pragma once

#include <engine/call.hpp>

#include <utility>

namespace latchkey::detail {

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
    if (one_) one_->complete();
  }
  own_delivery(own_delivery const&) = delete;
  own_delivery& operator=(own_delivery const&) = delete;

  // False: nobody delivers here, or another call already, or this one is for another executor.
  static bool leave(call& one) noexcept {
    if (!innermost_ || innermost_->one_ || !one.completes_on(innermost_->where_)) return false;
    innermost_->one_ = &one;
    return true;
  }

  // Outside the strand. What the handler throws comes out.
  void deliver() {
    close();
    if (call* const one = std::exchange(one_, nullptr)) one->complete_here();
  }

 private:
  void close() noexcept {
    if (innermost_ == this) innermost_ = outer_;
  }

  static inline thread_local own_delivery* innermost_ = nullptr;
  asio::any_io_executor const& where_;
  own_delivery* outer_;
  call* one_ = nullptr;
};

}  // namespace latchkey::detail
