#include <host.hpp>

#include <engine/guards.hpp>
#include <engine/sockets.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace latchkey::testing {

namespace {

using std::chrono::nanoseconds;
using steady = std::chrono::steady_clock;

constexpr std::size_t most_lines = 10'000;
// As a real server, which ends the connection of a client that does not read.
constexpr std::size_t most_unsent = 32u << 20;

bool is_plain(std::string_view word) {
  auto const shown = [](char c) { return c > ' ' && c <= '~' && c != '"'; };
  return !word.empty() && std::all_of(word.begin(), word.end(), shown);
}

void quote(std::string_view word, std::string& out) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (char const c : word) {
    auto const code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (code < ' ' || code > '~') {
      ((out += "\\x") += digits[code >> 4]) += digits[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string line_of(model::words_view words) {
  std::string made;
  for (auto const& word : words) {
    if (!made.empty()) made += ' ';
    if (is_plain(word))
      made += word;
    else
      quote(word, made);
  }
  return made;
}

}  // namespace

struct host::link {
  explicit link(protocol::socket&& from) : socket(std::move(from)) {}

  protocol::socket socket;
  std::uint32_t handle = 0;  // 0: the server does not know it yet, or any more
  std::string came;          // and has not been looked at
  std::string said;
  std::string flying;
  bool reading = false;
  bool ends = false;  // when all is said
  std::array<char, 4096> buffer{};
};

host::host(std::string const& socket, std::uint16_t port) : time_(std::chrono::system_clock::now().time_since_epoch()) {
  listen(asio::local::stream_protocol::endpoint(socket));
  if (port != 0) listen(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port));
  detail::quiet_signals const blocked;  // signals are the program's
  thread_ = std::thread([this, work = asio::make_work_guard(context_)] { context_.run(); });
}

host::~host() {
  context_.stop();
  thread_.join();
}

void host::listen(protocol::endpoint const& where) {
  auto const type = where.protocol();
  auto& door = *doors_.emplace_back(std::make_unique<acceptor>(context_));
  // Asio would open it without SOCK_CLOEXEC.
  int const fd = ::socket(type.family(), type.type() | SOCK_CLOEXEC, type.protocol());
  if (!detail::adopt(door, fd, type)) throw std::system_error(errno, std::generic_category(), "socket");
  if (type.family() != AF_UNIX) door.set_option(asio::socket_base::reuse_address(true));
  door.bind(where);
  door.listen();
  accept(door);
}

void host::accept(acceptor& door) {
  door.async_accept([this, &door](boost::system::error_code const& failed, protocol::socket made) {
    if (failed == asio::error::operation_aborted) return;
    if (!failed) {
      ::fcntl(made.native_handle(), F_SETFD, FD_CLOEXEC);  // Asio's accept does without
      auto const one = std::make_shared<link>(std::move(made));
      if (frozen_)
        waiting_.push_back(one);
      else
        admit(one);
    }
    accept(door);
  });
}

void host::admit(link_ptr const& one) {
  boost::system::error_code ignored;  // it may have gone already
  redis_.on_unix_socket = one->socket.local_endpoint(ignored).protocol().family() == AF_UNIX;
  if (!redis_.on_unix_socket) one->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  one->handle = redis_.accept();
  links_.emplace(one->handle, one);
  read(one);
}

void host::read(link_ptr const& one) {
  one->reading = true;
  one->socket.async_read_some(asio::buffer(one->buffer),
                              [this, one](boost::system::error_code const& failed, std::size_t n) {
                                one->reading = false;
                                if (one->handle == 0) return;
                                if (failed) {
                                  redis_.end_of_file(one->handle);
                                  return end(one);
                                }
                                one->came.append(one->buffer.data(), n);
                                // Until then the rest stays in the socket.
                                if (!frozen_) feed(one);
                                flush();
                              });
}

void host::feed(link_ptr const& one) {
  set_clock();
  std::string const bytes = std::exchange(one->came, {});
  redis_.arrive(one->handle, bytes);
  if (one->handle != 0 && !one->reading) read(one);
}

void host::write(link_ptr const& one) {
  if (!one->flying.empty() || one->said.empty()) return;
  one->flying.swap(one->said);
  asio::async_write(one->socket, asio::buffer(one->flying),
                    [this, one](boost::system::error_code const& failed, std::size_t) {
                      one->flying.clear();
                      if (failed || (one->ends && one->said.empty())) return end(one);
                      write(one);
                    });
}

void host::flush() {
  if (frozen_) return;
  for (auto const& one : std::exchange(unsent_, {})) write(one);
}

// The server knows it no more.
void host::end(link_ptr const& one) {
  if (one->handle != 0) links_.erase(one->handle);
  if (one->handle != 0 && redis_.knows(one->handle)) redis_.end_of_file(one->handle);
  one->handle = 0;
  boost::system::error_code ignored;
  one->socket.close(ignored);
}

// --- what a test wants ---

void host::advance(nanoseconds by) {
  time_ += by;
  set_clock();
}

void host::real_time() {
  if (running_since_ < 0) running_since_ = steady::now().time_since_epoch().count();
}

nanoseconds host::run_by_itself() const {
  return running_since_ < 0 ? nanoseconds(0) : steady::now().time_since_epoch() - nanoseconds(running_since_);
}

void host::set_clock() {
  redis_.data.microseconds = std::chrono::duration_cast<std::chrono::microseconds>(time_ + run_by_itself()).count();
  redis_.data.now = redis_.data.microseconds / 1'000;
}

void host::cut() {
  for (auto const& one : std::exchange(waiting_, {})) end(one);
  auto const all = links_;
  for (auto const& [handle, one] : all) {
    redis_.end_of_file(handle);
    end(one);
  }
}

void host::thaw() {
  if (!std::exchange(frozen_, false)) return;
  for (auto const& one : std::exchange(waiting_, {})) admit(one);
  auto const all = links_;
  for (auto const& [handle, one] : all)
    if (one->handle != 0 && !one->came.empty()) feed(one);
}

// --- what the server says ---

void host::answered(std::uint32_t connection, std::string&& bytes) {
  auto const found = links_.find(connection);
  if (found == links_.end()) return;
  link_ptr const one = found->second;
  one->said += bytes;
  unsent_.push_back(one);
  if (one->said.size() > most_unsent) asio::post(context_, [this, one] { end(one); });
}

void host::dropped(std::uint32_t connection) {
  auto const found = links_.find(connection);
  if (found == links_.end()) return;
  auto const one = found->second;
  end(one);
}

void host::hung_up(std::uint32_t connection) {
  auto const found = links_.find(connection);
  if (found == links_.end()) return;
  auto const one = found->second;
  links_.erase(found);
  one->handle = 0;
  one->ends = true;
  if (one->said.empty() && one->flying.empty()) end(one);
}

void host::ran(std::uint32_t, model::words_view words, reply const&) {
  log_.push_back(line_of(words));
  if (log_.size() > most_lines) log_.pop_front();
}

}  // namespace latchkey::testing
