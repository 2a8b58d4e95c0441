#include <engine/core.hpp>
#include <engine/transport.hpp>

#include <boost/asio/post.hpp>

// What becomes of a client that ran out of memory in the middle of something: it ends, as if its connections had been
// cut for good. Whoever waits is told, every hold is lost, and what the server still has ends with its lease.
namespace latchkey::detail {

bool core::over() {
  std::scoped_lock const lock(mutex_);
  return finished_;
}

// Under the mutex.
void core::break_down(step_batch& batch, operation_list& failed) noexcept {
  closing_ = true;
  machine_.abandon(batch.todo, failed);
  batch.lost.clear();
  try {
    settle_losses(batch);
  } catch (std::bad_alloc const&) {
    // Leases see that they are lost, but not all of their callbacks are called.
  }
}

void core::end_broken(operation_list& failed, std::exception_ptr const& why) noexcept {
  step_batch last;
  std::shared_ptr<direct_lane> lent;
  {
    std::scoped_lock const lock(mutex_);
    break_down(last, failed);
    if (lent_ != 0) lent = lane_;
  }
  if (lent) lent->shut();
  perform(last);
  while (!failed.empty()) {
    auto& one = failed.front();
    failed.pop_front();
    static_cast<call&>(one).complete();
  }
  if (why) try {
      std::rethrow_exception(why);
    } catch (std::bad_alloc const&) {
      // Its callers know.
    } catch (...) {
      callback_failed(why);
    }
  handler_lost();
}

void core::handler_lost() noexcept {
  if (forked()) return;
  std::shared_ptr<transport> io;  // the handler may be all that kept it alive
  {
    std::scoped_lock const lock(mutex_);
    if (finished_ || std::exchange(handler_lost_, true)) return;
    io = transport_.lock();
  }
  executor_gone();
  if (io) try {
      // Weakly, as all that may come after the end of a thread of our own.
      asio::post(io->strand(), [weak = std::weak_ptr(io)] {
        if (auto const still = weak.lock()) still->finish();
      });
    } catch (std::bad_alloc const&) {
      timer_.arm(boot_now());  // whose handler closes the sockets
    }
}

void core::handler_failed() noexcept {
  handler_lost();
  close_sockets();
}

// Either the handler was dropped, and with that lost. Or the strand has it, and nobody will ever run that: then whoever
// gave it is as good as on the strand.
void core::strand_failed() noexcept {
  bool stands_still = false;
  {
    std::scoped_lock const lock(mutex_);
    stands_still = !handler_lost_;
  }
  handler_lost();
  if (stands_still) close_sockets();
}

// On the strand, or where nothing else of the transport can run.
void core::close_sockets() noexcept {
  if (forked()) return;
  std::shared_ptr<transport> io;
  {
    std::scoped_lock const lock(mutex_);
    if (handler_lost_) io = transport_.lock();
  }
  if (io) io->finish();
}

// What handlers let escape from the client's own thread. Nothing else runs there: a transport that has lost a handler
// can be closed from here. It may have lost one if there was no memory: Asio does not say.
void core::escaped(std::exception_ptr const& what) noexcept {
  try {
    std::rethrow_exception(what);
  } catch (std::bad_alloc const&) {
    handler_lost();
  } catch (...) {
  }
  close_sockets();
  callback_failed(what);
}

}  // namespace latchkey::detail
