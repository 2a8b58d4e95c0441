#pragma once

#include <latchkey/error.hpp>
#include <machine/hold_link.hpp>

#include <atomic>
#include <memory>

namespace latchkey::detail {

// What the machines know as a hold_link. They may name it until it is unlinked; the engine makes it a shared
// pointer under the mutex, so that the holder can be told later, outside.
struct loss_listener : hold_link {
  // Null: the holder is going away.
  virtual std::shared_ptr<loss_listener> self() noexcept = 0;
  // The hold is lost. Called once, on the client's executor, outside all mutexes. May throw what the user's
  // callback throws.
  virtual void tell(error_code const& why) = 0;
  // Does tell() run code of the user's? Then it may take its time.
  virtual bool calls_the_user() const noexcept { return true; }

 protected:
  ~loss_listener() = default;

  // Its holder wants it no more. Here, since there is room behind `lost`: a client has very many.
  std::atomic<bool> released_{false};
};

}  // namespace latchkey::detail
