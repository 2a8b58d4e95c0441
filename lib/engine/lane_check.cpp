#include <engine/adopt.hpp>
#include <engine/lane_check.hpp>

#include <cerrno>

namespace latchkey::detail {

lane_check::lane_check(io_strand const& strand, listener& whom, std::shared_ptr<direct_lane> lane)
    : listener_(&whom), lane_(std::move(lane)), socket_(strand) {}

void lane_check::start(std::string_view question) {
  if (!adopt(socket_, lane_->duplicate())) return broken();
  // A few bytes on an idle socket: less than all of them means that it is not well.
  if (lane_->write_now(question.data(), question.size()) != static_cast<long>(question.size())) return broken();
  wait();
}

void lane_check::wait() {
  socket_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](error_code const& cancelled) noexcept {
                       if (!cancelled && self->listener_) self->readable();
                     });
}

void lane_check::readable() {
  long const n = lane_->read_now(buffer_.data(), buffer_.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return wait();
  if (n <= 0) return broken();
  std::string_view const bytes(buffer_.data(), static_cast<std::size_t>(n));
  // The answer is one line; with its end the machine may lend the lane at once.
  bool const whole = bytes.ends_with('\n');
  listener* const whom = listener_;
  if (whole) close();
  whom->on_lane_received(lane_->serial(), bytes);
  // By TLS the rest may have been received already, which makes no socket readable.
  if (!whole && listener_) readable();
}

void lane_check::broken() {
  listener* const whom = listener_;
  close();
  whom->on_lane_broken(lane_->serial());
}

void lane_check::close() {
  listener_ = nullptr;
  error_code ignored;
  socket_.close(ignored);
  lane_->make_blocking();
}

}  // namespace latchkey::detail
