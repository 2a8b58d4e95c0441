#pragma once

#include <latchkey/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

// One answer of the server, RESP2.
struct reply {
  enum class type : unsigned char { nil, integer, string, status, error, array };

  type kind = type::nil;
  std::int64_t integer = 0;
  std::string text;             // of a string, status or error
  std::vector<reply> elements;  // of an array

  bool is_error() const { return kind == type::error; }
  bool is_integer() const { return kind == type::integer; }
  bool is_array() const { return kind == type::array; }
};

// Bytes in, replies out. Refuses what a lock never needs: a reply above `max_bytes`, an array above
// `max_elements`, nesting above what hiredis reads; nothing is allocated from an announced length.
class LATCHKEY_EXPORT reply_reader {  // for latchkey::testing, beside a shared library
 public:
  static constexpr std::size_t max_bytes = 1 << 20;
  static constexpr std::size_t max_elements = 16'384;

  enum class result : unsigned char { reply, more, malformed };

  reply_reader();
  ~reply_reader();
  reply_reader(reply_reader&&) noexcept;
  reply_reader& operator=(reply_reader&&) noexcept;

  void feed(std::string_view bytes);

  // `reply`: `out` holds the next one. `more`: needs further bytes. `malformed`: for good; see problem().
  result next(reply& out);

  std::string const& problem() const { return problem_; }

 private:
  struct closer {
    void operator()(void* reader) const;
  };
  std::unique_ptr<void, closer> reader_;
  std::size_t pending_ = 0;  // bytes fed since the last complete reply
  std::string problem_;
};

}  // namespace latchkey::detail
