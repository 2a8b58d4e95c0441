#pragma once

#include <engine/connection.hpp>
#include <engine/core.hpp>
#include <engine/direct_lane.hpp>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

// Asks the server over the direct lane whether it is still there, while nobody has borrowed it: the machine lends
// the lane again when it has the answer. Lives on the strand.
class lane_check : public std::enable_shared_from_this<lane_check> {
 public:
  lane_check(io_strand const& strand, socket_listener& whom, std::shared_ptr<direct_lane> lane);

  std::uint32_t serial() const { return lane_->serial(); }
  void start(std::string_view question);
  void close();
  bool over() const { return listener_ == nullptr; }
  void detach() { listener_ = nullptr; }

 private:
  void wait();
  void readable();
  void broken();

  socket_listener* listener_;  // null: closed
  std::shared_ptr<direct_lane> lane_;
  asio::posix::basic_stream_descriptor<io_strand> socket_;
  std::array<char, 512> buffer_;
};

// The sockets and the timer of a client, on a strand of its executor. Performs what the machine's turns ask for and
// reports what comes. Its pending operations keep it alive, so it goes with its execution context at the latest,
// whatever handles and leases are left.
class transport final : public socket_listener, public std::enable_shared_from_this<transport> {
 public:
  // \throws what the executor says, or lock_error connect_failed: no descriptor is left.
  explicit transport(std::shared_ptr<core> whose);
  ~transport();

  io_strand const& strand() const { return strand_; }

  // All of these on the strand.
  void start();
  void turn();
  void limit_close();
  void finish();

 private:
  void watch_timer();
  void perform_io();
  void open(io_actions::opening const& opening);
  std::shared_ptr<name_lookup> names_of(node_address const& at);
  void write(io_actions::writing& writing);
  void discard(std::uint32_t serial);
  void abort(std::uint32_t serial);
  // Under the client's mutex, so that nobody borrows a lane that is not there yet.
  void lend(std::uint32_t serial);
  void end_check(std::uint32_t serial);
  connection* find(std::uint32_t serial);
  void forget(std::uint32_t serial);

  // Each is a thread inside the client's executor: an event callback that blocks there is told so.
  template <class Step>
  void tell(Step&& step) {
    executor_probe::mark const here(core_->threads().probe());
    core_->machine_steps().take(step);
  }
  void on_opened(std::uint32_t serial) override;
  void on_open_failed(std::uint32_t serial, error_code const& why, std::string const& text) override;
  void on_received(std::uint32_t serial, std::string_view bytes) override;
  void on_broken(std::uint32_t serial) override;

  using clock_timer =
      asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, io_strand>;

  std::shared_ptr<core> core_;
  io_strand strand_;
  asio::posix::basic_stream_descriptor<io_strand> timer_;
  clock_timer close_limit_;
  // Each host has its own, which answers all who ask for it.
  std::vector<std::pair<node_address, std::shared_ptr<name_lookup>>> names_;
  std::vector<std::shared_ptr<connection>> connections_;
  std::vector<std::shared_ptr<lane_check>> checks_;
  io_actions io_;
  bool finished_ = false;
};

}  // namespace latchkey::detail
