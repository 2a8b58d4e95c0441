#pragma once

#include <boost/asio/generic/stream_protocol.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace latchkey::detail {

namespace asio = boost::asio;

// Asks the system for the addresses of a name, on a thread of its own: Asio's resolver would make whoever destroys
// the execution context wait for a name server that does not answer.
class name_lookup {
 public:
  using endpoints = std::vector<asio::generic::stream_protocol::endpoint>;
  // Empty endpoints: the text says why.
  using receiver = std::function<void(endpoints, std::string)>;

  name_lookup() = default;
  ~name_lookup() { abandon(); }
  name_lookup(name_lookup const&) = delete;
  name_lookup& operator=(name_lookup const&) = delete;

  // Calls `done` once, on another thread, unless abandoned before.
  // \throws std::system_error: no thread can be had.
  void start(std::string host, std::uint16_t port, receiver done);

  // Afterwards `done` is neither running nor going to run.
  void abandon();

 private:
  struct mailbox {
    std::mutex mutex;
    receiver done;
  };
  std::shared_ptr<mailbox> mailbox_;
};

}  // namespace latchkey::detail
