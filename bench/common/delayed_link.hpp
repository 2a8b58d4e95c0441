#pragma once

#include <support/child_process.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace bench {

// Carries bytes between clients and a server on this machine, and adds so much to each round trip, half of it each way.
// A process of its own: it takes neither CPU time nor locks from the clients that are measured.
class delayed_link {
 public:
  delayed_link(std::uint16_t server, std::chrono::microseconds round_trip);

  std::uint16_t port() const { return port_; }
  std::string uri() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  latchkey::test::child_process process_;
  std::uint16_t port_;
};

}  // namespace bench
