#pragma once

#include <torture/board.hpp>
#include <torture/record.hpp>

#include <map>
#include <string>

namespace latchkey::torture {

// How far a run is: a bar that moves on a terminal, a line now and then elsewhere.
class progress {
 public:
  explicit progress(double minutes);

  void update(board const& shared, std::map<std::string, int> const& struck);
  void end() const;

 private:
  bool const terminal_;
  std::int64_t const length_;
  std::int64_t const began_ = now();
  std::int64_t next_ = began_;
};

// Most frequent first.
std::string in_words(std::map<std::string, int> const& counts);

}  // namespace latchkey::torture
