#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// Cuts what a client sends into commands. Only for well-formed bytes: arrays of strings.
class request_parser {
 public:
  struct request {
    std::vector<std::string> words;
    std::string bytes;  // as they came

    // In upper case.
    std::string name() const;
  };

  void feed(std::string_view bytes) { pending_ += bytes; }
  // False: needs more bytes.
  bool next(request& out);

 private:
  std::string pending_;
};

// How many bytes the first reply in here has; 0 if it is not complete. For well-formed bytes.
std::size_t reply_length(std::string_view bytes);

}  // namespace latchkey::test
