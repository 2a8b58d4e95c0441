#include <base/clock.hpp>
#include <engine/boot_timer.hpp>
#include <latchkey/error.hpp>

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace latchkey::detail {

boot_timer::boot_timer() : fd_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (fd_ < 0) throw lock_error(errc::connect_failed, std::string("no timer: ") + std::strerror(errno));
}

boot_timer::~boot_timer() { ::close(fd_); }

void boot_timer::arm(instant at) noexcept {
  if (at >= armed_.load()) return;
  std::scoped_lock const guard(mutex_);
  if (at >= armed_.load()) return;
  armed_.store(at);
  set(at);
}

void boot_timer::clock_jumped() noexcept {
  std::scoped_lock const guard(mutex_);
  if (armed_.load() != never) set(armed_.load());
}

void boot_timer::set(instant at) noexcept {
  // Zero would disarm it.
  auto const when = std::max<nanoseconds>(at.time_since_epoch() - clock_ahead(), nanoseconds(1));
  auto const whole = std::chrono::floor<std::chrono::seconds>(when);
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(whole.count());
  spec.it_value.tv_nsec = static_cast<long>((when - whole).count());
  ::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void boot_timer::fired() noexcept {
  std::scoped_lock const guard(mutex_);
  std::uint64_t count = 0;
  // Nothing to read: it was armed anew meanwhile, for an instant that is still ahead.
  if (::read(fd_, &count, sizeof count) == sizeof count) armed_.store(never);
}

int boot_timer::duplicate() const noexcept { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); }

}  // namespace latchkey::detail
