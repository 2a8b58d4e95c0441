#pragma once

#include <latchkey/error.hpp>

#include <unistd.h>

namespace latchkey::detail {

// Gives a descriptor to an object of Asio's, and closes it where that fails. False: so it did, or there is none.
template <class Object>
bool adopt(Object& to, int fd) {
  if (fd < 0) return false;
  error_code failed;
  try {
    to.assign(fd, failed);
  } catch (...) {
    ::close(fd);
    throw;
  }
  if (failed) ::close(fd);
  return !failed;
}

}  // namespace latchkey::detail
