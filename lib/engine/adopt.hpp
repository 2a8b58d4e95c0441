#pragma once

#include <latchkey/error.hpp>

#include <unistd.h>

namespace latchkey::detail {

// Gives a descriptor to an object of Asio's (a socket is told its protocol, too), and closes it where that fails.
// False: so it did, or there is none.
template <class Object, class... Protocol>
bool adopt(Object& to, int fd, Protocol const&... protocol) {
  if (fd < 0) return false;
  error_code failed;
  to.assign(protocol..., fd, failed);
  if (failed) ::close(fd);
  return !failed;
}

}  // namespace latchkey::detail
