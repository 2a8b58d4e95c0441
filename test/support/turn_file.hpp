#pragma once

#include <support/endpoint.hpp>

#include <array>
#include <string>

namespace latchkey::test {

// A plain file with a total and one count for each process. Nothing protects it but the lock that a turn is taken
// under: two turns at a time lose one.
class turn_file {
 public:
  static constexpr std::size_t processes = 4;
  struct counts {
    long total = 0;
    std::array<long, processes> of{};
  };

  turn_file();
  counts read() const;
  // Reads, adds one for this process, writes back.
  void turn(std::size_t process) const;

 private:
  temp_folder folder_;
  std::string path_;
};

}  // namespace latchkey::test
