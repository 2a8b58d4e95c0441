#pragma once

#include <base/instant.hpp>
#include <latchkey/error.hpp>

#include <unistd.h>

namespace latchkey::detail {

// A socket that no program inherits which is started meanwhile: a flag set afterwards comes too late for a fork in
// another thread. -1: errno says why.
int new_socket(int family, int type, int protocol = 0) noexcept;

// No delay for small writes, and a peer that is gone without a word is noticed within about `timeout`.
void tune_tcp(int fd, milliseconds timeout) noexcept;

// Nothing comes or goes any more, by copies of the descriptor neither, and what has not left yet never does.
void abort_connection(int fd) noexcept;

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
