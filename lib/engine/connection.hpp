#pragma once

#include <base/instant.hpp>
#include <engine/name_lookup.hpp>
#include <engine/tls.hpp>
#include <latchkey/error.hpp>
#include <wire/uri.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::detail {

using io_strand = asio::strand<asio::any_io_executor>;

// Whoever wants to know of a socket. Called on the strand, never after it was closed or released.
class socket_listener {
 public:
  virtual void on_opened(std::uint32_t serial) = 0;
  // `connect_failed`, or `tls_failed`.
  virtual void on_open_failed(std::uint32_t serial, error_code const& why, std::string const& text) = 0;
  virtual void on_received(std::uint32_t serial, std::string_view bytes) = 0;
  virtual void on_broken(std::uint32_t serial) = 0;

 protected:
  ~socket_listener() = default;
};

// One socket: connects it, reads what comes, writes what it is given. Decides nothing. Lives on the strand.
class connection : public std::enable_shared_from_this<connection> {
 public:
  using endpoint = asio::generic::stream_protocol::endpoint;

  struct limits {
    milliseconds connect_timeout;
    milliseconds timeout;
  };

  // What it leaves to somebody else.
  struct remains {
    int fd = -1;  // -1: nothing
    std::unique_ptr<tls_session> tls;
  };

  // Without `tls` in plain text. It outlives this.
  connection(io_strand const& strand, socket_listener& whom, std::shared_ptr<name_lookup> names, std::uint32_t serial,
             limits most, tls_context const* tls);
  ~connection();
  connection(connection const&) = delete;
  connection& operator=(connection const&) = delete;

  std::uint32_t serial() const { return serial_; }
  endpoint const& peer() const { return peer_; }

  // To a URI: asks for the addresses anew each time, and tries all of them within the limit.
  void open(target const& where);
  // Where another one led, whose host it is.
  void open(endpoint const& peer, std::string host);
  std::string const& host() const { return host_; }
  void write(std::string&& bytes);
  // Nothing more is told; what was not written yet is dropped.
  void close();
  // The same, and what has not left yet never does.
  void abort();
  // The listener is going away, and perhaps the execution context with it.
  void detach();
  // As close, and the server is told so.
  void end();
  // As close, but the socket goes to the caller.
  remains release();

 private:
  using stream = asio::basic_stream_socket<asio::generic::stream_protocol, io_strand>;
  using clock_timer =
      asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, io_strand>;

  void look_up(target const& where);
  void try_next();
  void tried(error_code const& failed);
  void connected();
  void begin_tls();
  void shake_hands();
  void opened();
  void read();
  void read_more();
  void has_read(error_code const& failed, std::size_t n);
  void flush();
  void flush_tls();
  void fail(error_code const& why);
  void open_failed(std::string text);
  void tls_failed();

  io_strand strand_;
  std::shared_ptr<name_lookup> const lookup_;
  socket_listener* listener_;  // null: closed
  std::uint32_t serial_;
  limits limits_;

  stream socket_;
  tls_context const* const secure_;   // null: plain text
  std::unique_ptr<tls_session> tls_;  // once there is a socket
  clock_timer attempt_timer_;
  name_lookup::ticket asked_ = 0;  // 0: nothing is awaited of it
  std::chrono::steady_clock::time_point connect_end_{};
  name_lookup::endpoints candidates_;
  std::size_t next_candidate_ = 0;
  bool attempt_timed_out_ = false;
  std::string host_;  // who the server is to prove to be
  endpoint peer_;

  std::array<char, 16 * 1024> incoming_;
  std::string outgoing_;   // to be written next
  std::string flying_;     // being written; must not move
  std::size_t flown_ = 0;  // of that, by TLS
  bool writing_ = false;
  bool heard_ = false;   // the server has said something
  bool broken_ = false;  // told so already
};

}  // namespace latchkey::detail
