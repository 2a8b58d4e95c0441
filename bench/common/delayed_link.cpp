#include <common/delayed_link.hpp>
#include <common/numbers.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <limits>
#include <list>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

using latchkey::test::descriptor;

constexpr std::int64_t try_again = 20'000;  // whose receiver does not read

struct piece {
  std::int64_t due;
  std::string bytes;  // empty: the end of the stream
};

struct one_way {
  int from, to;
  bool open = true;
  std::deque<piece> pieces{};
};

struct connection {
  descriptor near, far;
  std::array<one_way, 2> ways{{{near.get(), far.get()}, {far.get(), near.get()}}};

  bool over() const {
    return std::all_of(ways.begin(), ways.end(), [](auto const& one) { return !one.open && one.pieces.empty(); });
  }
};

// What is read at a time leaves at that time and the delay, in order.
void take(one_way& on, std::int64_t delay) {
  static std::array<char, 65536> buffer;
  auto const got = ::recv(on.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  on.open = got > 0;
  on.pieces.push_back({now() + delay, std::string(buffer.data(), on.open ? static_cast<std::size_t>(got) : 0)});
}

void give(one_way& on, std::int64_t moment) {
  while (!on.pieces.empty() && on.pieces.front().due <= moment) {
    auto& next = on.pieces.front();
    if (next.bytes.empty()) ::shutdown(on.to, SHUT_WR);
    auto const sent = ::send(on.to, next.bytes.data(), next.bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      next.due = moment + try_again;
      return;
    }
    // Who is gone needs no bytes any more.
    next.bytes.erase(0, sent < 0 ? next.bytes.npos : static_cast<std::size_t>(sent));
    if (next.bytes.empty()) on.pieces.pop_front();
  }
}

// Waits until something comes, or until the first piece is due.
void await(std::vector<pollfd>& ready, std::list<connection> const& all) {
  std::int64_t due = std::numeric_limits<std::int64_t>::max();
  for (auto const& one : all)
    for (auto const& way : one.ways) {
      ready.push_back({way.open ? way.from : -1, POLLIN, 0});
      if (!way.pieces.empty()) due = std::min(due, way.pieces.front().due);
    }
  std::int64_t const left = std::max<std::int64_t>(due - now(), 0);
  timespec const limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  ::ppoll(ready.data(), ready.size(), &limit, nullptr);
}

[[noreturn]] void carry(descriptor const& door, latchkey::test::endpoint const& server, std::int64_t delay) {
  std::list<connection> all;
  std::vector<pollfd> ready;
  for (;;) {
    ready.assign({{door.get(), POLLIN, 0}});
    await(ready, all);
    auto at = ready.begin() + 1;
    for (auto& one : all)
      for (auto& way : one.ways) {
        if ((at++)->revents) take(way, delay);
        give(way, now());
      }
    all.remove_if([](auto const& one) { return one.over(); });
    if (!ready[0].revents) continue;
    descriptor client(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int const on = 1;
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto far = latchkey::test::connect_to(server);
    if (client && far) all.push_back({std::move(client), std::move(far)});
  }
}

int play(latchkey::test::child_process::channel& parent, std::uint16_t server, std::int64_t delay) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // as punctual as an ordinary process can be
  auto const port = latchkey::test::free_port();
  auto const door = latchkey::test::listen_on({{}, port});
  parent.say(std::to_string(port));
  carry(door, {{}, server}, delay);
}

}  // namespace

delayed_link::delayed_link(std::uint16_t server, std::chrono::microseconds round_trip)
    : process_([=](auto& parent) { return play(parent, server, std::chrono::nanoseconds(round_trip).count() / 2); }) {
  auto const said = process_.talk().hear();
  if (said.empty()) throw std::runtime_error("the delayed link does not begin");
  port_ = static_cast<std::uint16_t>(std::stoul(said));
}

}  // namespace bench
