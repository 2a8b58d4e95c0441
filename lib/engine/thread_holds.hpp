#pragma once

#include <cstddef>
#include <memory>

namespace latchkey::detail {

class core;

// What the calling thread holds of a client by lock(), as far as it knows. When the thread ends the client is told, so
// that nothing is renewed for nobody.
class thread_holds {
 public:
  // Null: the thread is about to end, and can tell nobody any more.
  // \throws std::bad_alloc: nothing has changed.
  static thread_holds* of(core& whose);
  // Null: this thread has asked for nothing of that client.
  static thread_holds* known(core const& whose) noexcept;

  void took() noexcept { ++count_; }
  void gave() noexcept { count_ -= count_ > 0; }

 private:
  class all;
  explicit thread_holds(core& whose);

  core const* of_;
  std::weak_ptr<core> core_;
  std::size_t count_ = 0;
};

}  // namespace latchkey::detail
