#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
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

}  // namespace bench
