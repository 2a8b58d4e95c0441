#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/stage.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

namespace bench {

// Carries bytes between clients and a server on this machine, each of them for so long.
class delayed_link {
 public:
  delayed_link(std::uint16_t server, std::chrono::milliseconds one_way);
  ~delayed_link();
  delayed_link(delayed_link const&) = delete;
  delayed_link& operator=(delayed_link const&) = delete;

  std::string uri() const;

 private:
  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor door_;
  std::thread thread_;
};

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

using socket_ptr = std::shared_ptr<tcp::socket>;

// What was read at a time leaves at that time and the delay, in order.
asio::awaitable<void> carry(socket_ptr from, socket_ptr to, std::chrono::milliseconds delay) {
  struct piece {
    std::chrono::steady_clock::time_point due;
    std::string bytes;
  };
  auto const pieces = std::make_shared<std::deque<piece>>();
  auto const comes = std::make_shared<asio::steady_timer>(from->get_executor(), asio::steady_timer::time_point::max());
  asio::co_spawn(
      from->get_executor(),
      [](auto waiting, auto signal, socket_ptr out) -> asio::awaitable<void> {
        boost::system::error_code failed;
        for (;;) {
          if (waiting->empty()) {
            co_await signal->async_wait(asio::redirect_error(asio::use_awaitable, failed));
            continue;
          }
          piece next = std::move(waiting->front());
          waiting->pop_front();
          asio::steady_timer pause(co_await asio::this_coro::executor, next.due);
          co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
          failed = {};
          co_await asio::async_write(*out, asio::buffer(next.bytes), asio::redirect_error(asio::use_awaitable, failed));
          if (failed || next.bytes.empty()) co_return;
        }
      }(pieces, comes, to),
      asio::detached);
  std::array<char, 65536> buffer;
  boost::system::error_code failed;
  while (!failed) {
    auto const n =
        co_await from->async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failed));
    pieces->push_back({std::chrono::steady_clock::now() + delay, std::string(buffer.data(), n)});
    comes->cancel();
  }
}

asio::awaitable<void> accept(tcp::acceptor& door, std::uint16_t server, std::chrono::milliseconds delay) {
  tcp::endpoint const there(asio::ip::address_v4::loopback(), server);
  for (;;) {
    auto const near = std::make_shared<tcp::socket>(co_await door.async_accept(asio::use_awaitable));
    auto const far = std::make_shared<tcp::socket>(door.get_executor());
    co_await far->async_connect(there, asio::use_awaitable);
    for (auto const& one : {near, far}) one->set_option(tcp::no_delay(true));
    asio::co_spawn(door.get_executor(), carry(near, far, delay), asio::detached);
    asio::co_spawn(door.get_executor(), carry(far, near, delay), asio::detached);
  }
}

}  // namespace

delayed_link::delayed_link(std::uint16_t server, std::chrono::milliseconds one_way)
    : door_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
  asio::co_spawn(io_, accept(door_, server, one_way), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
}

delayed_link::~delayed_link() {
  io_.stop();
  thread_.join();
}

std::string delayed_link::uri() const { return "redis://127.0.0.1:" + std::to_string(door_.local_endpoint().port()); }

// Round trips until a new client has its first lock, counted by a link that delays what it carries.

void run_first_lock(stage& on) {
  using namespace std::chrono_literals;
  constexpr auto one_way = 25ms;
  constexpr double round_trip = 50;
  auto admin = on.server().admin();
  auto const measure = [&](bool known) {
    delayed_link link(on.port(), one_way);
    // A server that does not know the scripts is asked twice.
    if (!known) admin.ok("SCRIPT", "FLUSH", "SYNC");
    latchkey::client const client(link.uri(), quiet_config());
    auto const lock = client.get_lock(new_name("first_lock"));
    std::int64_t const began = now();
    lock.lock();
    double const took = static_cast<double>(now() - began) * 1e-6;
    lock.unlock();
    // The connection to the link itself takes no time: it counts as one more.
    return std::floor(took / round_trip) + 1;
  };
  on.say("through a link that takes 25 ms each way");
  measure(true);
  on.add({.name = "the server does not know the script", .unit = "round trips", .figure = measure(false), .most = 3});
  on.add({.name = "the server knows the script", .unit = "round trips", .figure = measure(true), .most = 3});
}

}  // namespace bench
