#include <engine/call.hpp>
#include <engine/connection.hpp>
#include <engine/sockets.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace latchkey::detail {

namespace {

// A server that does not read while we write this much is as good as gone.
constexpr std::size_t most_unwritten = 64u << 20;

}  // namespace

connection::connection(io_strand const& strand, socket_listener& whom, std::shared_ptr<name_lookup> names,
                       std::uint32_t serial, limits most, tls_context const* tls)
    : strand_(strand),
      lookup_(std::move(names)),
      listener_(&whom),
      serial_(serial),
      limits_(most),
      socket_(strand),
      secure_(tls),
      attempt_timer_(strand) {}

connection::~connection() { lookup_->forget(asked_); }

void connection::open(target const& where) try {
  connect_end_ = std::chrono::steady_clock::now() + limits_.connect_timeout;
  host_ = where.host;
  if (where.how != target::scheme::tcp) {
    candidates_.emplace_back(asio::local::stream_protocol::endpoint(where.path));
    return try_next();
  }
  error_code no_address;
  auto const address = asio::ip::make_address(where.host, no_address);
  if (no_address) return look_up(where);
  candidates_.emplace_back(asio::ip::tcp::endpoint(address, where.port));
  try_next();
} catch (std::exception const& problem) {
  candidates_.clear();
  open_failed(problem.what());
}

void connection::open(endpoint const& peer, std::string host) {
  connect_end_ = std::chrono::steady_clock::now() + limits_.connect_timeout;
  host_ = std::move(host);
  candidates_.push_back(peer);
  try_next();
}

void connection::look_up(target const& where) {
  // The look-up counts as work: run() does not return while it is under way.
  auto ex = asio::prefer(asio::any_io_executor(strand_), asio::execution::outstanding_work.tracked);
  auto receiver = [weak = weak_from_this(), ex](name_lookup::endpoints found, std::string problem) {
    asio::post(ex, [weak, all = std::move(found), text = std::move(problem)]() mutable noexcept {
      auto self = weak.lock();
      if (!self || !self->listener_) return;
      if (all.empty()) return self->open_failed(std::move(text));
      self->candidates_ = std::move(all);
      self->try_next();
    });
  };
  asked_ = lookup_->ask(where.host, where.port, std::move(receiver));
}

void connection::try_next() {
  endpoint const& candidate = candidates_[next_candidate_++];
  attempt_timed_out_ = false;
  error_code ignored;
  socket_.close(ignored);
  auto const now = std::chrono::steady_clock::now();
  // A silent address may use up its share, not the time of those behind it.
  auto const share = (connect_end_ - now) / static_cast<long>(candidates_.size() - next_candidate_ + 1);
  attempt_timer_.expires_at(now + share);
  attempt_timer_.async_wait(
      [self = shared_from_this(), attempt = next_candidate_](error_code const& cancelled) noexcept {
        if (cancelled || !self->listener_ || attempt != self->next_candidate_) return;
        self->attempt_timed_out_ = true;
        error_code no_matter;
        self->socket_.close(no_matter);
      });
  auto finished = [self = shared_from_this()](error_code const& failed) noexcept { self->tried(failed); };
  auto const protocol = candidate.protocol();
  int const fd = new_socket(protocol.family(), protocol.type(), protocol.protocol());
  error_code refused(fd < 0 ? errno : 0, boost::system::system_category());
  if (!refused && !adopt(socket_, fd, protocol)) refused = asio::error::no_descriptors;
  if (refused)
    asio::post(strand_, [finished, refused]() noexcept { finished(refused); });
  else
    socket_.async_connect(candidate, std::move(finished));
}

void connection::tried(error_code const& failed) {
  if (!listener_) return;
  if (!failed && !attempt_timed_out_) return connected();
  if (next_candidate_ < candidates_.size()) return try_next();
  attempt_timer_.cancel();
  open_failed(attempt_timed_out_ ? "no answer" : failed.message());
}

void connection::connected() {
  attempt_timer_.cancel();
  // A timer that has run out already must not find this attempt.
  peer_ = candidates_[next_candidate_++ - 1];
  error_code failed;
  socket_.non_blocking(true, failed);
  if (failed) return open_failed(failed.message());
  if (peer_.protocol().family() != AF_UNIX) tune_tcp(socket_.native_handle(), limits_.timeout);
  if (secure_) return begin_tls();
  opened();
}

void connection::begin_tls() {
  tls_ = secure_->begin(socket_.native_handle(), host_);
  if (!tls_) return open_failed("TLS: no memory");
  // A little earlier than whoever waits for it gives up: this knows better what was missing.
  attempt_timer_.expires_at(connect_end_ - std::min(limits_.connect_timeout / 20, milliseconds(50)));
  attempt_timer_.async_wait([self = shared_from_this()](error_code const& cancelled) noexcept {
    if (!cancelled && self->listener_ && !self->tls_->ready())
      self->open_failed("TLS: no answer to the handshake (does the server speak TLS on this port?)");
  });
  shake_hands();
}

void connection::shake_hands() {
  if (tls_->shake_hands()) {
    attempt_timer_.cancel();
    return opened();
  }
  if (errno != EAGAIN) return tls_failed();
  socket_.async_wait(tls_->wants_write() ? stream::wait_write : stream::wait_read,
                     [self = shared_from_this()](error_code const& cancelled) noexcept {
                       if (!cancelled && self->listener_) self->shake_hands();
                     });
}

void connection::opened() {
  listener_->on_opened(serial_);
  if (listener_) read_more();
}

void connection::read() {
  auto where = strand_.get_inner_executor();
  // A handler of the user's that is called here may throw.
  auto finished = [self = shared_from_this(), where](error_code const& failed, std::size_t n = 0) {
    own_delivery later(where);
    [&]() noexcept { asio::dispatch(self->strand_, [self, failed, n]() noexcept { self->has_read(failed, n); }); }();
    later.deliver();
  };
  if (tls_) return socket_.async_wait(stream::wait_read, asio::bind_executor(where, std::move(finished)));
  socket_.async_read_some(asio::buffer(incoming_), asio::bind_executor(where, std::move(finished)));
}

void connection::read_more() {
  if (!tls_ || !tls_->pending()) return read();
  asio::post(strand_, [self = shared_from_this()]() noexcept { self->has_read({}, 0); });
}

void connection::has_read(error_code const& failed, std::size_t n) {
  if (!listener_) return;
  if (failed) return fail(failed);
  if (tls_) {
    ssize_t const got = tls_->read(incoming_.data(), incoming_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return read();
    if (got <= 0) return fail(got == 0 ? asio::error::eof : error_code(errno, boost::system::system_category()));
    n = static_cast<std::size_t>(got);
  }
  heard_ = true;
  listener_->on_received(serial_, {incoming_.data(), n});
  if (listener_ && !broken_) read_more();
}

void connection::write(std::string&& bytes) {
  if (broken_) return;
  if (outgoing_.empty())
    outgoing_.swap(bytes);
  else
    outgoing_ += bytes;
  if (outgoing_.size() > most_unwritten) {
    asio::post(strand_, [self = shared_from_this()]() noexcept {
      if (self->listener_) self->fail(asio::error::no_buffer_space);
    });
    return;
  }
  if (!writing_) flush();
}

void connection::flush() {
  if (tls_) return flush_tls();
  // Almost always the whole of it fits into the socket at once.
  error_code failed;
  std::size_t const n = socket_.write_some(asio::buffer(outgoing_), failed);
  if (n == outgoing_.size()) {
    std::string().swap(outgoing_);  // what comes next brings its own memory
    return;
  }
  flying_ = std::exchange(outgoing_, std::string());
  writing_ = true;
  // An error other than "not now" comes again, and is reported from there.
  asio::async_write(socket_, asio::buffer(flying_) + n,
                    [self = shared_from_this()](error_code const& problem, std::size_t) noexcept {
                      self->writing_ = false;
                      std::string().swap(self->flying_);
                      if (!self->listener_) return;
                      if (problem) return self->fail(problem);
                      if (!self->outgoing_.empty()) self->flush();
                    });
}

void connection::flush_tls() {
  if (flying_.empty()) flying_ = std::exchange(outgoing_, std::string());
  while (flown_ < flying_.size()) {
    ssize_t const n = tls_->write(flying_.data() + flown_, flying_.size() - flown_, MSG_DONTWAIT);
    if (n > 0) {
      flown_ += static_cast<std::size_t>(n);
      continue;
    }
    writing_ = true;
    // What the server said before it closed the connection says more than that it did.
    if (errno != EAGAIN)
      return asio::post(strand_, [self = shared_from_this()]() noexcept {
        if (self->listener_) self->has_read({}, 0);
        if (self->listener_) self->fail(asio::error::broken_pipe);
      });
    return socket_.async_wait(tls_->wants_write() ? stream::wait_write : stream::wait_read,
                              [self = shared_from_this()](error_code const& problem) noexcept {
                                self->writing_ = false;
                                if (!self->listener_) return;
                                if (problem) return self->fail(problem);
                                self->flush_tls();
                              });
  }
  std::string().swap(flying_);
  flown_ = 0;
  if (!outgoing_.empty()) flush_tls();
}

void connection::fail(error_code const& why) {
  if (broken_) return;
  broken_ = true;
  if (heard_ || peer_.protocol().family() == AF_UNIX) return listener_->on_broken(serial_);
  if (!tls_) return open_failed("the server closed the connection before it said a word (a port for TLS?)");
  if (tls_->words().empty()) return open_failed("TLS: " + why.message());
  tls_failed();
}

void connection::open_failed(std::string text) {
  if (listener_) listener_->on_open_failed(serial_, errc::connect_failed, text);
}

void connection::tls_failed() {
  auto const why = tls_->refused() ? errc::tls_failed : errc::connect_failed;
  if (listener_) listener_->on_open_failed(serial_, why, "TLS: " + tls_->words());
}

void connection::detach() {
  listener_ = nullptr;
  lookup_->forget(std::exchange(asked_, 0));
}

void connection::close() {
  detach();
  attempt_timer_.cancel();
  error_code ignored;
  socket_.shutdown(stream::shutdown_both, ignored);  // the child of a fork may have a copy
  socket_.close(ignored);
}

void connection::abort() {
  if (socket_.is_open()) abort_connection(socket_.native_handle());
  close();
}

void connection::end() {
  if (tls_) tls_->say_goodbye();
  close();
}

connection::remains connection::release() {
  listener_ = nullptr;
  attempt_timer_.cancel();
  error_code failed;
  int const fd = socket_.release(failed);
  if (failed) return {};
  return {fd, std::move(tls_)};
}

}  // namespace latchkey::detail
