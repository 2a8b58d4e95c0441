#include <engine/core.hpp>
#include <engine/transport.hpp>

#include <boost/asio/post.hpp>

namespace latchkey::detail {

bool core::closing() {
  std::scoped_lock const lock(mutex_);
  return closing_;
}

void core::close() noexcept {
  if (forked()) return;
  uncancelled const whole;
  begin_close();
  if (thread_ && !thread_->on_thread() && !callbacks_->on_thread()) wait_for_close();
}

std::shared_ptr<attachment> core::attached(std::string const& identity,
                                           std::function<std::shared_ptr<attachment>()> const& make) {
  std::scoped_lock const lock(mutex_);
  if (attachments_.size() >= sweep_attachments_at_) {
    std::erase_if(attachments_, [](auto const& entry) { return entry.second.expired(); });
    sweep_attachments_at_ = 2 * attachments_.size() + 64;
  }
  auto& known = attachments_[identity];
  auto found = known.lock();
  if (!found) known = found = make();
  return found;
}

void core::tell_attachments(void (attachment::*what)() noexcept) {
  std::vector<std::shared_ptr<attachment>> attached;
  {
    std::scoped_lock const lock(mutex_);
    for (auto const& [identity, one] : attachments_)
      if (auto alive = one.lock()) attached.push_back(std::move(alive));
  }
  for (auto const& one : attached) (one.get()->*what)();
}

void core::begin_close() {
  tell_attachments(&attachment::closing);
  std::uint64_t const closer = owner_access::number(owner::this_thread());
  std::shared_ptr<direct_lane> lent;
  std::shared_ptr<transport> io;
  step([&](client_machine& machine, instant now, actions& out) {
    machine.close(closer, now, out);
    if (std::exchange(closing_, true)) return;
    if (lent_ != 0 && borrower_->where == operation::place::idle) lent = lane_;
    io = transport_.lock();
  });
  // Its borrower is told by the machine, but sleeps in the socket.
  if (lent) lent->shut();
  // Weakly: a thread that has run out keeps what was posted to it, and with a strong reference all of this, for ever.
  if (!io) return;
  asio::post(io->strand(), [weak = std::weak_ptr(io)]() noexcept {
    if (auto const still = weak.lock()) still->limit_close();
  });
}

void core::wait_for_close() {
  instant const end = after(boot_now(), settings_.close_timeout);
  auto const over = std::make_shared<wake_flag>();
  on_closed([over] { over->set(); });
  over->wait_until(end);
  // A handler of the user's may still be running there; it then ends by itself.
  thread_->join_until(end);
  if (!callbacks_->join_until(end)) events_.abandon();
}

void core::on_closed(std::function<void()> done) {
  {
    std::scoped_lock const lock(mutex_);
    if (!finished_) {
      on_closed_.push_back(std::move(done));
      return;
    }
  }
  done();
}

bool core::over() {
  std::scoped_lock const lock(mutex_);
  return finished_;
}

void core::executor_gone() noexcept {
  if (forked()) return;
  tell_attachments(&attachment::closing);
  step([&](client_machine& machine, instant now, actions& out) {
    closing_ = finishing_ = true;
    machine.close_now(now, out);
  });
  finished();
}

void core::finished() noexcept {
  std::vector<std::function<void()>> told;
  std::shared_ptr<direct_lane> lane;
  {
    std::scoped_lock const lock(mutex_);
    if (finished_) return;
    finished_ = finishing_ = true;
    told.swap(on_closed_);
    lane.swap(lane_);
  }
  if (lane) lane->shut();
  step([](client_machine& machine, instant now, actions& out) { machine.close_now(now, out); });
  tell_attachments(&attachment::closed);
  server_.reset();
  for (auto const& done : told) done();
  if (thread_) thread_->finish();
  if (callbacks_) callbacks_->finish();
}

}  // namespace latchkey::detail
