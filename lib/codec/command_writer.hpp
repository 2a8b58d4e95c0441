#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// The words of one command. Kept between commands, so that steady work allocates little.
class words {
 public:
  void clear() { used_ = 0; }
  void add(std::string_view word) { add_empty().assign(word); }
  void add(std::int64_t number);
  template <class... Words>
  void add_all(Words const&... more) {
    (add(more), ...);
  }
  // These words and no others.
  template <class... Words>
  void say(Words const&... all) {
    clear();
    add_all(all...);
  }
  // One more word, to be filled in place.
  std::string& add_empty();
  std::size_t size() const { return used_; }
  std::string& operator[](std::size_t i) { return words_[i]; }
  std::string const& operator[](std::size_t i) const { return words_[i]; }
  std::span<std::string const> view() const { return {words_.data(), used_}; }

 private:
  std::vector<std::string> words_;
  std::size_t used_ = 0;
};

// Appends the command as RESP to `out`.
void append_command(std::string& out, words const& command);

}  // namespace latchkey::detail
