#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::detail {

// A part of a URI that knows where in the whole it stands, so that an error can say so without showing any of it.
class uri_text {
 public:
  static constexpr std::size_t npos = std::string_view::npos;

  explicit uri_text(std::string_view whole) : text_(whole) {}

  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  char operator[](std::size_t at) const { return text_[at]; }
  bool starts_with(std::string_view start) const { return text_.starts_with(start); }
  std::size_t find(char c) const { return text_.find(c); }
  std::size_t find_any(std::string_view set) const { return text_.find_first_of(set); }
  std::size_t find_not_of(std::string_view set) const { return text_.find_first_not_of(set); }
  // Of a blank or a control character.
  std::size_t find_control() const;

  // The first `size` characters; all for npos.
  uri_text first(std::size_t size) const { return {text_.substr(0, size), offset_}; }
  // From the character at `at` on; empty, behind the last one, for npos.
  uri_text from(std::size_t at) const;
  uri_text after(std::size_t at) const { return from(at + 1); }

  std::string lower() const;
  // Without percent signs.
  std::string decoded() const;
  // A number of plain digits within the bounds.
  std::int64_t number(std::int64_t least, std::int64_t most, std::string_view problem) const;

  // \throws lock_error bad_uri
  [[noreturn]] void fail(std::size_t at, std::string_view problem) const;

 private:
  uri_text(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  std::string_view text_;
  std::size_t offset_ = 0;
};

}  // namespace latchkey::detail
