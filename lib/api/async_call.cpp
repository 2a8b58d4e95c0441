#include <api/async_call.hpp>

#include <optional>

namespace latchkey::detail {

async_call::async_call(lock_key const& key, asio::cancellation_slot slot)
    : key_(key),
      slot_(std::move(slot)),
      client_executor_(key.engine->forked() ? asio::any_io_executor(asio::system_executor())
                                            : key.engine->threads().tracked_executor()) {}

void async_call::run_on(asio::any_completion_executor const& executor) {
  on_client_executor_ = executor == asio::any_completion_executor(client_executor_) ||
                        executor == asio::any_completion_executor(executor_of(key_));
  // The way to an executor of the user's is not to lead through his callbacks; but one that runs a handler wherever it
  // is given one must not run it on the thread for I/O.
  bool const inline_there = executor.target<asio::system_executor>() != nullptr;
  if (!on_client_executor_ && !inline_there && !key_.engine->forked())
    client_executor_ = key_.engine->threads().tracked_io_executor();
  handler_executor_ = asio::prefer(executor, asio::execution::outstanding_work.tracked);
}

void async_call::begin(refusal const& wrong) {
  self_ = shared_from_this();
  if (wrong) {
    error = wrong.code;
    text = wrong.text;
    return complete();
  }
  try {
    connect();
    key_.start(*this);
  } catch (...) {  // nothing has begun
    disconnect();
    self_.reset();
    throw;
  }
}

void async_call::connect() {
  if ((what != type::acquire && what != type::connect) || !slot_.is_connected()) return;
  slot_.assign([weak = weak_from_this()](asio::cancellation_type asked) {
    constexpr auto accepted =
        asio::cancellation_type::terminal | asio::cancellation_type::partial | asio::cancellation_type::total;
    if ((asked & accepted) == asio::cancellation_type::none) return;
    // Too late is no harm: the machine leaves completed calls alone.
    if (auto self = weak.lock()) self->key_.cancel(*self);
  });
  connected_ = true;
}

void async_call::complete() noexcept {
  // Whoever runs the handler may be done with it before the posting has returned.
  auto const kept = std::move(self_);
  // By way of the client's executor, because the type of a handler's executor has lost the ability to post.
  asio::post(client_executor_, asio::bind_executor(handler_executor_, [one = kept] { one->deliver_marked(); }));
}

void async_call::complete_here() {
  auto const one = std::move(self_);
  one->deliver_marked();
}

void async_call::deliver_marked() {
  std::optional<executor_probe::mark> here;
  if (on_client_executor_) here.emplace(key_.engine->threads().probe());
  deliver();
}

void async_call::disconnect() {
  if (connected_) slot_.clear();
}

}  // namespace latchkey::detail
