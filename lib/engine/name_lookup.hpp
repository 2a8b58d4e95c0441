#pragma once

#include <boost/asio/generic/stream_protocol.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::detail {

namespace asio = boost::asio;

// Asks the system for the addresses of a client's server, on a thread of its own: Asio's resolver would make whoever
// destroys the execution context wait for a name server that does not answer. One thread at a time: who asks while a
// look-up is under way shares its answer, so that attempts do not pile up threads behind a resolver that hangs.
class name_lookup {
 public:
  using endpoints = std::vector<asio::generic::stream_protocol::endpoint>;
  // Empty endpoints: the text says why.
  using receiver = std::function<void(endpoints, std::string)>;
  // Of one question, never reused; 0 is none.
  using ticket = std::uint64_t;

  name_lookup();
  ~name_lookup();
  name_lookup(name_lookup const&) = delete;
  name_lookup& operator=(name_lookup const&) = delete;

  // Calls `done` once, on another thread, unless forgotten before. All questions are for the same name.
  // \throws std::system_error: no thread can be had.
  ticket ask(std::string host, std::uint16_t port, receiver done);

  // Afterwards that `done` is neither running nor going to run.
  void forget(ticket which);

 private:
  struct mailbox;
  std::shared_ptr<mailbox> const mailbox_;  // shared with the thread, which may outlive this
};

}  // namespace latchkey::detail
