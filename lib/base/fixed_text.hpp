#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace latchkey::detail {

// A text that never changes, in the room of one pointer: a client has very many.
class fixed_text {
 public:
  // At most 4 GiB.
  explicit fixed_text(std::string_view text) : all_(new char[sizeof(size) + text.size()]) {
    auto const count = static_cast<size>(text.size());
    std::memcpy(all_.get(), &count, sizeof(size));
    text.copy(all_.get() + sizeof(size), text.size());
  }

  std::string_view view() const {
    size count;
    std::memcpy(&count, all_.get(), sizeof(size));
    return {all_.get() + sizeof(size), count};
  }
  operator std::string_view() const { return view(); }

 private:
  using size = std::uint32_t;

  std::unique_ptr<char[]> all_;  // how long, and the text
};

}  // namespace latchkey::detail
