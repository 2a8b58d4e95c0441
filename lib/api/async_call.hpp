#pragma once

#include <engine/deliveries.hpp>
#include <engine/lock_key.hpp>
#include <engine/requests.hpp>
#include <latchkey/acquire_options.hpp>
#include <latchkey/detail/initiate.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace latchkey::detail {

// What a query's number means to the caller.
template <class Value>
Value answer_as(std::int64_t value);

template <>
inline bool answer_as<bool>(std::int64_t value) {
  return value != 0;
}

template <>
inline std::uint64_t answer_as<std::uint64_t>(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

template <>
inline int answer_as<int>(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<int>::max()));
}

template <>
inline std::optional<milliseconds> answer_as<std::optional<milliseconds>>(std::int64_t value) {
  if (value == -2) return std::nullopt;
  if (value < 0) return milliseconds::max();
  return milliseconds(value);
}

// A call with a completion handler.
class async_call : public handled_call, public std::enable_shared_from_this<async_call> {
 public:
  // Starts it, or lets it fail with what is wrong. Not to be touched afterwards.
  void begin(refusal const& wrong);
  // The same for one that is over as it begins.
  void end();

  // Never calls the handler itself: it may run on any thread, in the initiating call as well.
  void complete() noexcept override;
  bool completes_on(asio::any_io_executor const& here) const noexcept override;
  void complete_here() override { engine_.threads().completed().run(*this); }

  handler_place const* place() const noexcept override { return other_ ? nullptr : &place_; }
  bool usual() const noexcept override { return on_client_executor_ && engine_.threads().handlers_beside_io(); }
  void call_handler() override;
  void forget() noexcept override { self_.reset(); }

 protected:
  // `key`: of what is started and cancelled; null: nothing is.
  // `kept`: what the engine, the key, the name and the link lie in.
  async_call(core& engine, lock_key const* key, std::shared_ptr<void const> kept, asio::cancellation_slot slot);
  virtual ~async_call();

  // On the handler's executor.
  virtual void deliver() = 0;
  void run_on(asio::any_io_executor const& executor);
  // Of a sort that cannot be posted to.
  void run_on_other(asio::any_completion_executor const& executor);
  asio::any_io_executor const& client_executor() const { return place_.by; }
  // Cancellation no longer reaches the call; just before the handler is called.
  void disconnect();

 private:
  void post() noexcept;
  void arrive();
  // Cancellation reaches the call from now on.
  void connect();

  std::shared_ptr<void const> const kept_;
  core& engine_;
  lock_key const* key_;
  asio::cancellation_slot slot_;
  bool connected_ = false;
  bool posted_ = false;
  bool on_client_executor_ = false;
  std::shared_ptr<async_call> self_;  // while it is under way
  // Tracked: they run until the handler was called.
  handler_place place_;
  std::unique_ptr<asio::any_completion_executor> other_;  // where the handler runs if `place_` cannot say it
};

// Memory of a few calls that are over, kept by their thread for those that follow.
void* take_call_memory(std::size_t size);
void give_call_memory(void* block, std::size_t size) noexcept;

template <class T>
struct call_allocator {
  using value_type = T;

  call_allocator() = default;
  template <class Other>
  call_allocator(call_allocator<Other> const&) noexcept {}

  T* allocate(std::size_t count) { return static_cast<T*>(take_call_memory(count * sizeof(T))); }
  void deallocate(T* block, std::size_t count) noexcept { give_call_memory(block, count * sizeof(T)); }

  friend bool operator==(call_allocator const&, call_allocator const&) noexcept { return true; }
};

// `Finish` makes the handler's arguments, a tuple, from the operation; its member `abandon`, if there is one, is
// called when the handler is destroyed without a call.
template <class Finish, class... Values>
class typed_async_call final : public async_call {
  using plain_handler = asio::any_completion_handler<void(error_code, Values...)>;

 public:
  typed_async_call(core& engine, lock_key const* key, std::shared_ptr<void const> kept,
                   handler<void(error_code, Values...)> done, Finish finish)
      : async_call(engine, key, std::move(kept), asio::get_associated_cancellation_slot(done)),
        done_(std::move(static_cast<plain_handler&>(done))),
        finish_(std::move(finish)) {
    if (done.has_other())
      run_on_other(asio::get_associated_executor(done_, client_executor()));
    else
      run_on(done.where());
  }

  ~typed_async_call() override {
    if constexpr (requires { finish_.abandon(*this); })
      if (!delivered_) finish_.abandon(*this);
  }

 private:
  void deliver() override {
    delivered_ = true;
    auto result = finish_(static_cast<operation const&>(*this));
    auto done = std::move(done_);
    disconnect();
    std::apply(std::move(done), std::move(result));
  }

  plain_handler done_;
  Finish finish_;
  bool delivered_ = false;
};

template <class Finish, class... Values>
std::shared_ptr<async_call> make_async_call(lock_key const& key, std::shared_ptr<void const> kept,
                                            handler<void(error_code, Values...)> done, Finish finish) {
  using type = typed_async_call<Finish, Values...>;
  return std::allocate_shared<type>(call_allocator<type>(), *key.engine, &key, std::move(kept), std::move(done),
                                    std::move(finish));
}

// The asynchronous form of run_call.
template <class... Values, class Finish, class Fill, class... Args>
void start_call(std::shared_ptr<lock_key const> const& key, handler<void(error_code, Values...)> done, Finish finish,
                Fill const& fill, Args&&... args) {
  auto call = make_async_call(*key, key, std::move(done), std::move(finish));
  call->begin(fill(*call, *key, std::forward<Args>(args)...));
}

// Calls a handler with these values behind all that was completed before, and never on this stack.
template <class... Values>
void complete_later(std::shared_ptr<core> const& engine, handler<void(error_code, Values...)> done,
                    error_code const& failed, Values... values) {
  auto finish = [failed, ... v = std::move(values)](operation const&) mutable {
    return std::tuple<error_code, Values...>(failed, std::move(v)...);
  };
  using type = typed_async_call<decltype(finish), Values...>;
  std::make_shared<type>(*engine, nullptr, engine, std::move(done), std::move(finish))->end();
}

// The same without a client.
template <class... Values>
void complete_later(asio::any_io_executor const& fallback, handler<void(error_code, Values...)> done,
                    error_code const& failed, Values... values) {
  auto const where = asio::get_associated_executor(done, fallback);
  asio::post(fallback, asio::bind_executor(where, [h = std::move(done), failed, ... v = std::move(values)]() mutable {
               std::move(h)(failed, std::move(v)...);
             }));
}

}  // namespace latchkey::detail
