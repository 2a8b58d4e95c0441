#pragma once

#include <server_model/server.hpp>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace latchkey::testing {

namespace asio = boost::asio;
using detail::reply;

// The modelled server on real sockets. It lives on a thread of its own: others ask for what they want done there.
class host final : private model::server_user {
 public:
  // Listens on a Unix socket, and on this port of the loopback interface unless it is zero.
  // \throws std::system_error
  explicit host(std::string const& socket, std::uint16_t port = 0);
  ~host();
  host(host const&) = delete;
  host& operator=(host const&) = delete;

  // Runs a function on the server's thread, between two commands, and hands back what it returns or throws.
  template <class F>
  auto ask(F function) {
    std::packaged_task<std::invoke_result_t<F&>()> task([&] {
      set_clock();
      struct sender {
        host& of;
        ~sender() { of.flush(); }
      } const then{*this};
      return function();
    });
    auto result = task.get_future();
    asio::post(context_, [mine = std::move(task)]() mutable { mine(); });
    return result.get();
  }

  // --- what follows is for functions that ask() runs ---

  model::server& redis() { return redis_; }
  void advance(std::chrono::nanoseconds by);
  void real_time();
  void cut();
  void freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }
  void thaw();
  std::vector<std::string> log() const { return {log_.begin(), log_.end()}; }

 private:
  using protocol = asio::generic::stream_protocol;
  using acceptor = asio::basic_socket_acceptor<protocol>;
  struct link;
  using link_ptr = std::shared_ptr<link>;

  void listen(protocol::endpoint const& where);
  void accept(acceptor& door);
  void admit(link_ptr const& one);
  void read(link_ptr const& one);
  void feed(link_ptr const& one);
  void write(link_ptr const& one);
  void flush();
  void end(link_ptr const& one);
  void set_clock();
  std::chrono::nanoseconds run_by_itself() const;

  void answered(std::uint32_t connection, std::string&& bytes) override;
  void dropped(std::uint32_t connection) override;
  void hung_up(std::uint32_t connection) override;
  void ran(std::uint32_t connection, model::words_view words, reply const& said) override;

  asio::io_context context_{1};
  std::vector<std::unique_ptr<acceptor>> doors_;
  model::lua_scripts scripts_;
  model::server redis_{scripts_, *this};
  std::map<std::uint32_t, link_ptr> links_;  // by the server's handle
  std::vector<link_ptr> waiting_;            // came while it was frozen
  std::vector<link_ptr> unsent_;
  std::deque<std::string> log_;
  std::chrono::nanoseconds time_;  // of the server, since 1970, without what it has run by itself
  std::int64_t running_since_ = -1;
  bool frozen_ = false;
  std::thread thread_;
};

}  // namespace latchkey::testing
