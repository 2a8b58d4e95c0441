#pragma once

namespace latchkey::detail {

// Something of a higher floor that belongs to a client, is found there by its identity, and is told of its end.
class attachment {
 public:
  virtual ~attachment() = default;
  // The client begins to close; what is released now still leaves. Called outside all mutexes, on any thread, perhaps
  // more than once.
  virtual void closing() noexcept = 0;
};

}  // namespace latchkey::detail
