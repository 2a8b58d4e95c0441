#include <api/async_call.hpp>

#include <api/calls.hpp>

#include <optional>

namespace latchkey::detail {

async_call::async_call(lock_key const& key, asio::cancellation_slot slot)
    : key_(key),
      slot_(std::move(slot)),
      client_executor_(key.engine->forked() ? asio::any_io_executor(asio::system_executor())
                                            : key.engine->tracked_executor()) {}

void async_call::run_on(asio::any_completion_executor const& executor) {
  on_client_executor_ = executor == asio::any_completion_executor(client_executor_) ||
                        executor == asio::any_completion_executor(key_.engine->executor());
  handler_executor_ = asio::prefer(executor, asio::execution::outstanding_work.tracked);
}

void async_call::begin(refusal const& wrong) {
  self_ = shared_from_this();
  if (wrong) {
    error = wrong.code;
    text = wrong.text;
    return complete();
  }
  if (what == type::acquire && slot_.is_connected()) {
    connected_ = true;
    slot_.assign([weak = weak_from_this()](asio::cancellation_type asked) {
      constexpr auto accepted =
          asio::cancellation_type::terminal | asio::cancellation_type::partial | asio::cancellation_type::total;
      if ((asked & accepted) == asio::cancellation_type::none) return;
      // Too late is no harm: the machine leaves completed calls alone.
      if (auto self = weak.lock()) detail::cancel(self->key_, *self);
    });
  }
  detail::start(key_, *this);
}

void async_call::complete() noexcept {
  // Whoever runs the handler may destroy this before the posting has returned.
  auto const client_executor = client_executor_;
  auto const handler_executor = handler_executor_;
  // By way of the client's executor, because the type of a handler's executor has lost the ability to post.
  asio::post(client_executor, asio::bind_executor(handler_executor, [self = std::move(self_)]() mutable {
               auto const one = std::move(self);
               one->deliver_marked();
             }));
}

void async_call::complete_here() {
  auto const one = std::move(self_);
  one->deliver_marked();
}

void async_call::deliver_marked() {
  std::optional<executor_probe::mark> here;
  if (on_client_executor_) here.emplace(key_.engine->probe());
  deliver();
}

void async_call::disconnect() {
  if (connected_) slot_.clear();
}

}  // namespace latchkey::detail
