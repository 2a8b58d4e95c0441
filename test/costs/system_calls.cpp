#include <costs/system_calls.hpp>

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<std::uint64_t> calls{0};

// The function of the C library that this program's own one hides.
template <class Function>
Function* count_and_find(char const* name, std::atomic<Function*>& found) {
  calls.fetch_add(1, std::memory_order_relaxed);
  Function* known = found.load(std::memory_order_relaxed);
  if (!known) {
    known = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
    found.store(known, std::memory_order_relaxed);
  }
  return known;
}

}  // namespace

std::uint64_t latchkey::test::system_calls() noexcept { return calls.load(std::memory_order_relaxed); }

#define LATCHKEY_COUNTED(result, name, parameters, throws, ...)             \
  extern "C" [[gnu::visibility("default")]] result name parameters throws { \
    using function = result parameters;                                     \
    static std::atomic<function*> found{nullptr};                           \
    return count_and_find(#name, found)(__VA_ARGS__);                       \
  }

LATCHKEY_COUNTED(ssize_t, send, (int fd, void const* from, size_t size, int flags), noexcept(false), fd, from, size,
                 flags)
LATCHKEY_COUNTED(ssize_t, recv, (int fd, void* to, size_t size, int flags), noexcept(false), fd, to, size, flags)
LATCHKEY_COUNTED(ssize_t, sendmsg, (int fd, msghdr const* what, int flags), noexcept(false), fd, what, flags)
LATCHKEY_COUNTED(ssize_t, recvmsg, (int fd, msghdr* what, int flags), noexcept(false), fd, what, flags)
LATCHKEY_COUNTED(ssize_t, read, (int fd, void* to, size_t size), noexcept(false), fd, to, size)
LATCHKEY_COUNTED(ssize_t, write, (int fd, void const* from, size_t size), noexcept(false), fd, from, size)
LATCHKEY_COUNTED(int, poll, (pollfd * all, nfds_t count, int timeout), noexcept(false), all, count, timeout)
LATCHKEY_COUNTED(int, epoll_wait, (int fd, epoll_event* to, int size, int timeout), noexcept(false), fd, to, size,
                 timeout)
LATCHKEY_COUNTED(int, epoll_ctl, (int fd, int what, int of, epoll_event* event), noexcept, fd, what, of, event)
LATCHKEY_COUNTED(int, timerfd_settime, (int fd, int flags, itimerspec const* to, itimerspec* old), noexcept, fd, flags,
                 to, old)
