#pragma once

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

}  // namespace latchkey::test
