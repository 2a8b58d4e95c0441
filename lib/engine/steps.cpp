#include <engine/steps.hpp>

#include <engine/call.hpp>
#include <engine/transport.hpp>

#include <boost/asio/post.hpp>

namespace latchkey::detail {

void steps::resolve(step_batch& batch) {
  resolve_losses(batch);
  batch.events = events_.push(batch.todo.notes);
  batch.wake = machine_.wake_at();
  if (batch.todo.turn && !turn_posted_ && !end_.finishing()) {
    turn_posted_ = true;
    batch.turn = true;
    batch.birth = !io_wanted_;
    io_wanted_ = true;
  }
  if (end_.ripe([this] { return machine_.closed() && machine_.quiet(); })) {
    batch.finished = !io_wanted_;
    batch.finish = io_wanted_;
  }
  // If it is gone although it was made, so is the execution context.
  if (batch.turn || batch.finish) batch.io = io_.lock();
}

void steps::resolve_losses(step_batch& batch) {
  if (batch.todo.lost.empty()) return;
  batch.lost.reserve(batch.todo.lost.size());  // a holder does not go here, with the mutex held
  for (actions::loss const& loss : batch.todo.lost)
    if (auto holder = static_cast<loss_listener*>(loss.link)->self())
      batch.lost.emplace_back(std::move(holder), loss.why);
}

void steps::perform(step_batch& batch) noexcept {
  timer_.arm(batch.wake);
  post_io(batch);
  if (batch.events) events_.deliver_soon();
  for (note const& note : batch.todo.notes) events_.report(note);
  // Handlers of one answer run in the order of their calls: a single one needs no queue for that.
  bool const alone = batch.todo.completed.size() == 1 && batch.lost.empty();
  for (operation* ended : batch.todo.completed) {
    auto& done = *static_cast<call*>(ended);
    if (!alone || !own_delivery::leave(done)) done.complete();
  }
  for (auto const& loss : batch.lost) user_.tell_loss(loss.first, loss.second);
  if (batch.finished) user_.finished();
}

void steps::post_io(step_batch const& batch) {
  if (batch.birth) return user_.begin_io();
  if (!batch.io) return;
  // Weakly: a thread of our own that has run out keeps what comes too late, and would keep all of this with it.
  std::weak_ptr<transport> const weak = batch.io;
  if (batch.finish) {
    asio::post(batch.io->strand(), [weak]() noexcept {
      if (auto const io = weak.lock()) io->finish();
    });
  } else if (batch.turn) {
    asio::post(batch.io->strand(), [weak]() noexcept {
      if (auto const io = weak.lock()) io->turn();
    });
  }
}

bool steps::io_made(std::shared_ptr<transport> const& made) {
  std::scoped_lock const lock(mutex_);
  if (!end_.finishing()) io_ = made;
  return !end_.finishing();
}

bool steps::io_failed() {
  std::scoped_lock const lock(mutex_);
  io_wanted_ = turn_posted_ = false;
  return !end_.finishing();
}

}  // namespace latchkey::detail
