#include <base/clock.hpp>
#include <engine/direct_lane.hpp>
#include <engine/sockets.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace latchkey::detail {

namespace {

bool several_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

constexpr milliseconds longest_slice{20};

// A sleep in the socket ends by itself now and then: the caller's wait may be over, a stop may have been asked for, and
// the clock that this sleep goes by stands still while the machine is suspended.
void limit_waits(int fd, milliseconds slice) {
  timeval limit{};
  limit.tv_usec = static_cast<suseconds_t>(std::chrono::microseconds(slice).count());
  // One system call per answer instead of poll and recv.
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

direct_lane::direct_lane(std::uint32_t serial, int fd, std::unique_ptr<tls_session> tls, milliseconds timeout,
                         std::chrono::microseconds longest_look)
    : serial_(serial),
      fd_(fd),
      tls_(std::move(tls)),
      timeout_(timeout),
      slice_(std::min(timeout, std::chrono::ceil<milliseconds>(longest_sleep(longest_slice)))),
      busy_(several_cpus() ? nanoseconds(longest_look) : nanoseconds::zero()) {
  limit_waits(fd_, slice_);
  make_blocking();
}

direct_lane::~direct_lane() {
  if (tls_) tls_->say_goodbye();
  shut();  // the child of a fork may have a copy
  ::close(fd_);
}

long direct_lane::send(void const* from, std::size_t size, int flags) {
  return tls_ ? tls_->write(from, size, flags) : ::send(fd_, from, size, flags | MSG_NOSIGNAL);
}

long direct_lane::receive(void* to, std::size_t room, int flags) {
  return tls_ ? tls_->read(to, room, flags) : ::recv(fd_, to, room, flags);
}

// By TLS a server may say what is no answer: a ticket for a later session.
bool direct_lane::something_came() {
  char stray;
  bool const bytes = ::recv(fd_, &stray, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
  if (!tls_ || (!bytes && !tls_->pending())) return bytes;
  return tls_->read(&stray, 1, MSG_DONTWAIT) >= 0 || !would_block(errno);
}

void direct_lane::take(std::string& request) {
  request_.clear();
  request_.swap(request);
}

void direct_lane::shut() noexcept { ::shutdown(fd_, SHUT_RDWR); }

void direct_lane::abort() noexcept { abort_connection(fd_); }

int direct_lane::duplicate() const noexcept { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); }

void direct_lane::make_blocking() noexcept {
  int const flags = ::fcntl(fd_, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK);
}

error_code direct_lane::exchange(instant now, instant end, wake_flag const& over) {
  end = std::min(end, after(now, timeout_));
  // What was there before the request is not its answer: a stray reply must not grant a lock.
  if (something_came()) return errc::connection_lost;
  if (error_code const failed = send_all(end, over)) return failed;
  return receive(now, end, over);
}

error_code direct_lane::send_all(instant end, wake_flag const& over) {
  std::size_t sent = 0;
  while (sent < request_.size()) {
    long const n = send(request_.data() + sent, request_.size() - sent, 0);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (!would_block(errno) && errno != EINTR) {
      return errc::connection_lost;
    } else if (!wait_for(POLLOUT, end, over)) {  // signals may come more often than the socket's own limit
      return errc::timeout;
    }
  }
  return {};
}

error_code direct_lane::receive(instant now, instant end, wake_flag const& over) {
  instant const look_end = busy_.begin(now, end);
  long n = -1;
  bool const found = look_end > now && ((n = look(look_end)) >= 0 || !would_block(errno));
  error_code failed;
  for (bool first = found;; first = false) {
    if (!first) n = sleep(end, over);
    if (n <= 0) {
      failed = n < 0 && would_block(errno) ? errc::timeout : errc::connection_lost;
      break;
    }
    reader_.feed({buffer_.data(), static_cast<std::size_t>(n)});
    auto result = reader_.next(answer_);
    if (result == reply_reader::result::more) continue;
    // A second reply would be taken for the answer to the next request.
    reply extra;
    if (result == reply_reader::result::malformed || reader_.next(extra) != reply_reader::result::more)
      failed = errc::protocol_error;
    break;
  }
  busy_.end(boot_now());
  return failed;
}

long direct_lane::look(instant end) {
  for (;;) {
    long const n = receive(buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EINTR && !would_block(errno)) return n;
    if (instant const now = boot_now(); now >= end) {
      busy_.in_vain(now);
      errno = EAGAIN;
      return -1;
    }
    ::sched_yield();
  }
}

long direct_lane::sleep(instant end, wake_flag const& over) {
  for (;;) {
    // The socket's own limit serves the ordinary case; a nearer deadline needs poll.
    bool const own_limit = end - boot_now() >= slice_ - std::chrono::milliseconds(1);
    if (!own_limit && !wait_for(POLLIN, end, over)) {
      errno = EAGAIN;
      return -1;
    }
    long const n = receive(buffer_.data(), buffer_.size(), own_limit ? 0 : MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EINTR && !would_block(errno)) return n;
    if (!over.is_set() && boot_now() < end) continue;
    errno = EAGAIN;
    return -1;
  }
}

bool direct_lane::wait_for(short events, instant end, wake_flag const& over) const {
  for (;;) {
    milliseconds const rest = std::min(left(boot_now(), end), slice_);
    if (rest <= milliseconds::zero() || over.is_set()) return false;
    pollfd look{fd_, events, 0};
    int const ready = ::poll(&look, 1, static_cast<int>(rest.count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

}  // namespace latchkey::detail
