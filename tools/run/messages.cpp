#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <base/exit_code.hpp>
#include <cstdlib>
#include <run/messages.hpp>

namespace latchkey::tool {
namespace {

// The longest is a variable of the environment, which the kernel takes up to 128 KiB.
constexpr std::size_t longest = 160 * 1'024;

}  // namespace

boot_time boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

message_end::~message_end() {
  if (socket_ >= 0) ::close(socket_);
}

bool message_end::send(std::string_view word, std::string_view rest) const {
  auto text = std::string(word);
  if (!rest.empty()) (text += ' ') += rest;
  for (;;) {
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::int64_t message_end::message::number() const { return std::strtoll(rest.c_str(), nullptr, 10); }

std::optional<message_end::message> message_end::receive() const {
  std::string text(longest, '\0');
  auto const size = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size <= 0) return message{};
  text.resize(static_cast<std::size_t>(size));
  auto const blank = text.find(' ');
  if (blank == text.npos) return message{text, {}};
  return message{text.substr(0, blank), text.substr(blank + 1)};
}

std::pair<message_end, message_end> message_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw failure(no_fork, std::string("no sockets: ") + ::strerror(errno));
  int const room = 4 * static_cast<int>(longest);
  for (int const end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  return {message_end(ends[0]), message_end(ends[1])};
}

}  // namespace latchkey::tool
