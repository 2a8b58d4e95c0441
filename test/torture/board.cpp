#include <support/endpoint.hpp>
#include <torture/board.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace latchkey::torture {

// An empty file reads as zeros, which is what a new board is.
board& map_board(std::string const& path) {
  test::descriptor const file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), sizeof(board)) != 0) throw std::runtime_error("cannot write " + path);
  void* const at = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  return *static_cast<board*>(at);
}

std::string board_file(std::string const& folder) { return folder + "/board"; }

}  // namespace latchkey::torture
