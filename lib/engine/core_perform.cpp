#include <engine/core.hpp>
#include <engine/own_delivery.hpp>
#include <engine/transport.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

namespace latchkey::detail {

namespace {

// A transport that is to be made. Goes unmade only with its execution context.
class unborn_transport {
 public:
  explicit unborn_transport(std::shared_ptr<core> whose) : core_(std::move(whose)) {}
  ~unborn_transport() {
    if (core_) core_->executor_gone();
  }
  unborn_transport(unborn_transport const&) = delete;
  unborn_transport& operator=(unborn_transport const&) = delete;

  std::shared_ptr<core> take() { return std::exchange(core_, nullptr); }

 private:
  std::shared_ptr<core> core_;
};

}  // namespace

void core::resolve(step_batch& batch) {
  resolve_losses(batch);
  // Under the mutex: events of steps that are taken one after the other are told in that order.
  if (callbacks_ && settings_.on_event) batch.events = events_.push(batch.todo.notes);
  batch.wake = machine_.wake_at();
  if (batch.todo.turn && !turn_posted_ && !finishing_) {
    turn_posted_ = true;
    batch.turn = true;
    batch.birth = !transport_made_;
    transport_made_ = true;
  }
  if (closing_ && !finishing_ && machine_.closed() && machine_.quiet()) {
    finishing_ = true;
    batch.finished = !transport_made_;
    batch.finish = transport_made_;
  }
  // If it is gone although it was made, so is the execution context.
  if (batch.turn || batch.finish) batch.io = transport_.lock();
}

void core::resolve_losses(step_batch& batch) {
  batch.lost.reserve(batch.todo.lost.size());  // a holder does not go here, with the mutex held
  for (actions::loss const& one : batch.todo.lost)
    if (auto holder = static_cast<loss_listener*>(one.link)->self())
      batch.lost.emplace_back(std::move(holder), one.why);
}

void core::perform(step_batch& batch) noexcept {
  timer_.arm(batch.wake);
  post_io(batch);
  if (callbacks_) {
    bool const due = batch.events || (settings_.on_event && events_.push(batch.todo.notes));
    if (due) deliver_events_soon();
  } else {
    for (note const& one : batch.todo.notes) report(one);
  }
  // Handlers of one answer run in the order of their calls: a single one needs no queue for that.
  bool const alone = batch.todo.completed.size() == 1 && batch.lost.empty();
  for (operation* one : batch.todo.completed) {
    auto& done = *static_cast<call*>(one);
    if (!alone || !own_delivery::leave(done)) done.complete();
  }
  post_losses(batch);
  if (batch.finished) finished();
}

void core::post_losses(step_batch& batch) {
  for (auto const& one : batch.lost)
    post_on(one.first->calls_the_user() ? tracked_executor() : tracked_io_executor(),
            [told = one.first, why = one.second] { told->tell(why); });
}

void core::post_io(step_batch const& batch) {
  if (batch.birth) {
    auto unborn = std::make_unique<unborn_transport>(shared_from_this());
    return asio::post(executor_, [birth = std::move(unborn)] { birth->take()->begin_transport(); });
  }
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

void core::begin_transport() noexcept {
  std::shared_ptr<transport> made;
  try {
    made = std::make_shared<transport>(shared_from_this());
  } catch (boost::system::system_error const& problem) {
    return transport_failed(problem.what());
  }
  bool over = false;
  {
    std::scoped_lock const lock(mutex_);
    over = finishing_;
    if (!over) transport_ = made;
  }
  if (over) return finished();
  asio::dispatch(made->strand(), [made]() noexcept {
    made->start();
    made->turn();
  });
}

// No descriptor is left, perhaps only for now: the next call tries again. Without a timer nobody can wait for that.
void core::transport_failed(std::string text) {
  bool over = false;
  {
    std::scoped_lock const lock(mutex_);
    transport_made_ = turn_posted_ = false;
    over = finishing_;
  }
  executor_probe::mark const here(probe_);
  step([&](client_machine& machine, instant now, actions& out) { machine.unreachable(text, now, out); });
  if (over) finished();
}

void core::lane_closed(std::uint32_t serial) {
  std::shared_ptr<direct_lane> gone;
  {
    std::scoped_lock const lock(mutex_);
    if (lane_ && lane_->serial() == serial) gone.swap(lane_);
  }
  if (gone) gone->shut();
}

std::shared_ptr<direct_lane> core::lane() {
  std::scoped_lock const lock(mutex_);
  return lane_;
}

}  // namespace latchkey::detail
