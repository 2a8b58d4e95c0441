#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <run/processes.hpp>
#include <run/terminal.hpp>

namespace latchkey::tool {
namespace {

bool is_pipe(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && S_ISFIFO(about.st_mode);
}

}  // namespace

terminal::terminal() : device_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)), our_group_(::getpgrp()) {}

terminal::~terminal() {
  if (device_ >= 0) ::close(device_);
}

bool terminal::is_ours() const { return is_of(our_group_); }

bool terminal::is_ours_alone() const { return is_ours() && !is_pipe(STDIN_FILENO) && !is_pipe(STDOUT_FILENO); }

bool terminal::is_of(pid_t group) const { return device_ >= 0 && ::tcgetpgrp(device_) == group; }

void terminal::give_to(pid_t group) const {
  if (device_ >= 0) ::tcsetpgrp(device_, group);
}

void terminal::take_from(pid_t group) const {
  if (is_of(group)) ::tcsetpgrp(device_, our_group_);
}

bool somebody_continues_us() {
  auto outside = ::getppid();
  while (outside > 0 && ::getpgid(outside) == ::getpgrp()) outside = parent_of(outside);
  return outside > 0 && ::getsid(outside) == ::getsid(0);
}

}  // namespace latchkey::tool
