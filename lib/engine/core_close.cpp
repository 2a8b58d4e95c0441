#include <engine/core.hpp>
#include <engine/transport.hpp>

#include <boost/asio/post.hpp>

namespace latchkey::detail {

bool core::closing() {
  return steps_.look([this](client_machine&) { return end_.begun(); });
}

void core::close() noexcept {
  if (forked()) return;
  uncancelled const whole;
  begin_close();
  if (threads_.own() && !threads_.on_own_thread()) wait_for_close();
}

std::shared_ptr<attachment> core::attached(std::string const& identity,
                                           std::function<std::shared_ptr<attachment>()> const& make) {
  return steps_.look([&](client_machine&) { return attachments_.find(identity, make); });
}

void core::tell_attachments(void (attachment::*what)() noexcept) {
  for (auto const& one : steps_.look([this](client_machine&) { return attachments_.alive(); })) (one.get()->*what)();
}

void core::begin_close() {
  tell_attachments(&attachment::closing);
  std::uint64_t const closer = owner_access::number(owner::this_thread());
  std::vector<std::shared_ptr<direct_lane>> lent;
  std::shared_ptr<transport> io;
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    machine.close(closer, now, out);
    if (!end_.begin()) return;
    lent = lanes_.of_ended_calls();
    io = steps_.io();
  });
  // Their borrowers are told by the machine, but sleep in the sockets.
  for (auto const& one : lent) one->shut();
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
  if (!threads_.join_until(end)) events_.abandon();
}

void core::on_closed(std::function<void()> done) {
  if (!steps_.look([&](client_machine&) { return end_.wait(done); })) done();
}

bool core::over() {
  return steps_.look([this](client_machine&) { return end_.over(); });
}

void core::executor_gone() noexcept {
  if (forked()) return;
  tell_attachments(&attachment::closing);
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    end_.cut_short();
    machine.close_now(now, out);
  });
  finished();
}

void core::finished() noexcept {
  std::vector<client_end::waiter> told;
  std::vector<std::shared_ptr<direct_lane>> lanes;
  bool const first = steps_.look([&](client_machine&) {
    if (!end_.finish(told)) return false;
    lanes = lanes_.end();
    return true;
  });
  if (!first) return;
  // A borrower sleeps in the socket. Otherwise it ends here, in good order.
  for (auto const& one : lanes)
    if (one.use_count() > 1) one->shut();
  lanes.clear();
  steps_.take([](client_machine& machine, instant now, actions& out) { machine.close_now(now, out); });
  tell_attachments(&attachment::closed);
  server_.reset();
  for (auto const& done : told) done();
  threads_.finish();
}

}  // namespace latchkey::detail
