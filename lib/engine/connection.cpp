#include <engine/connection.hpp>
#include <engine/own_delivery.hpp>
#include <engine/socket_options.hpp>
#include <engine/sure_handler.hpp>

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

#include <algorithm>
#include <exception>

namespace latchkey::detail {

namespace {

// A server that does not read while we write this much is as good as gone.
constexpr std::size_t most_unwritten = 64u << 20;

}  // namespace

connection::connection(io_strand const& strand, listener& whom, std::weak_ptr<core> of, std::uint32_t serial,
                       limits most)
    : strand_(strand),
      core_(std::move(of)),
      listener_(&whom),
      serial_(serial),
      limits_(most),
      socket_(strand),
      attempt_timer_(strand) {}

connection::~connection() = default;

void connection::open(target const& where) try {
  connect_end_ = std::chrono::steady_clock::now() + limits_.connect_timeout;
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

void connection::open(endpoint const& peer) {
  connect_end_ = std::chrono::steady_clock::now() + limits_.connect_timeout;
  candidates_.push_back(peer);
  try_next();
}

void connection::look_up(target const& where) {
  // The look-up counts as work: run() does not return while it is under way.
  auto ex = asio::prefer(asio::any_io_executor(strand_), asio::execution::outstanding_work.tracked);
  lookup_.start(where.host, where.port,
                [weak = weak_from_this(), whose = core_, ex](name_lookup::endpoints found, std::string problem) {
                  try {
                    // Not surely: if it gets lost, the connection is given up in time.
                    asio::post(ex, [weak, all = std::move(found), text = std::move(problem)]() mutable {
                      auto self = weak.lock();
                      if (!self || !self->listener_) return;
                      if (all.empty()) return self->open_failed(std::move(text));
                      self->candidates_ = std::move(all);
                      self->try_next();
                    });
                  } catch (std::bad_alloc const&) {
                    if (auto const self = whose.lock()) self->strand_failed();
                  }
                });
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
      surely_on(strand_, core_, [self = shared_from_this(), attempt = next_candidate_](error_code const& cancelled) {
        if (cancelled || !self->listener_ || attempt != self->next_candidate_) return;
        self->attempt_timed_out_ = true;
        error_code no_matter;
        self->socket_.close(no_matter);
      }));
  socket_.async_connect(candidate, surely_on(strand_, core_, [self = shared_from_this()](error_code const& failed) {
                          self->tried(failed);
                        }));
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
  listener_->on_opened(*this);
  if (listener_) read();
}

void connection::read() {
  auto on_strand = surely_on(strand_, core_, [self = shared_from_this()](error_code const& failed, std::size_t n) {
    self->has_read(failed, n);
  });
  auto where = strand_.get_inner_executor();
  auto finished = [where, has_read = std::move(on_strand)](error_code const& failed, std::size_t n) mutable {
    own_delivery later(where);
    has_read(failed, n);
    later.deliver();
  };
  socket_.async_read_some(asio::buffer(incoming_), asio::bind_executor(where, std::move(finished)));
}

void connection::has_read(error_code const& failed, std::size_t n) {
  if (!listener_) return;
  if (failed) return fail(failed);
  listener_->on_received(*this, {incoming_.data(), n});
  if (listener_ && !broken_) read();
}

void connection::write(std::string&& bytes) {
  if (broken_) return;
  if (outgoing_.empty())
    outgoing_.swap(bytes);
  else
    outgoing_ += bytes;
  if (outgoing_.size() > most_unwritten) {
    asio::post(strand_, surely(core_, [self = shared_from_this()] {
                 if (self->listener_) self->fail(asio::error::no_buffer_space);
               }));
    return;
  }
  if (!writing_) flush();
}

void connection::flush() {
  // Almost always the whole of it fits into the socket at once.
  error_code failed;
  std::size_t const n = socket_.write_some(asio::buffer(outgoing_), failed);
  if (n == outgoing_.size()) {
    outgoing_.clear();
    return;
  }
  flying_.clear();
  flying_.swap(outgoing_);
  writing_ = true;
  // An error other than "not now" comes again, and is reported from there.
  asio::async_write(socket_, asio::buffer(flying_) + n,
                    surely(core_, [self = shared_from_this()](error_code const& problem, std::size_t) {
                      self->writing_ = false;
                      if (!self->listener_) return;
                      if (problem) return self->fail(problem);
                      if (!self->outgoing_.empty()) self->flush();
                    }));
}

void connection::fail(error_code const& why) {
  if (broken_) return;
  broken_ = true;
  listener_->on_broken(*this, why);
}

void connection::open_failed(std::string text) {
  if (listener_) listener_->on_open_failed(*this, text);
}

void connection::detach() {
  listener_ = nullptr;
  lookup_.abandon();
}

void connection::close() {
  detach();
  attempt_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

int connection::release() {
  listener_ = nullptr;
  attempt_timer_.cancel();
  error_code failed;
  int const fd = socket_.release(failed);
  return failed ? -1 : fd;
}

}  // namespace latchkey::detail
