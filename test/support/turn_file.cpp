#include <support/turn_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

namespace latchkey::test {

turn_file::turn_file() : path_(folder_.path() + "/turns") {
  descriptor const file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  counts const none;
  if (::pwrite(file.get(), &none, sizeof none, 0) != sizeof none) throw std::runtime_error("cannot write " + path_);
}

turn_file::counts turn_file::read() const {
  counts now;
  descriptor const file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (::pread(file.get(), &now, sizeof now, 0) != sizeof now) throw std::runtime_error("cannot read " + path_);
  return now;
}

void turn_file::turn(std::size_t process) const {
  descriptor const file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  counts now;
  if (::pread(file.get(), &now, sizeof now, 0) != sizeof now) throw std::runtime_error("cannot read " + path_);
  ++now.total;
  ++now.of[process];
  // One write of a few bytes: a process that is killed has done it or not.
  if (::pwrite(file.get(), &now, sizeof now, 0) != sizeof now) throw std::runtime_error("cannot write " + path_);
}

}  // namespace latchkey::test
