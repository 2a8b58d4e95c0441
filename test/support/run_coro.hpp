#pragma once

#include <latchkey/client.hpp>
#include <support/patience.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace latchkey::test {

namespace asio = boost::asio;

// Runs the context until the predicate holds. False: it did not in time.
template <class Predicate>
bool run_until(asio::io_context& io, Predicate holds, std::chrono::milliseconds limit = patience) {
  auto const end = clock::now() + limit;
  while (!holds()) {
    io.restart();
    if (io.run_one_until(std::min(end, clock::now() + 10ms)) == 0 && clock::now() >= end) return holds();
    if (io.stopped()) std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Makes the connections of a client of this context. False: it could not in time.
inline bool connect_on(asio::io_context& io, client const& own) {
  auto const connected = std::make_shared<bool>(false);
  own.async_connect([connected](error_code error) { *connected = !error; });
  return run_until(io, [&] { return *connected; });
}

// Until it is cancelled.
inline asio::awaitable<void> wait_for_ever() {
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
}

// Runs the coroutine on the context, which nobody else runs, and gives its result.
template <class T>
T run_coro(asio::io_context& io, asio::awaitable<T> coroutine, std::chrono::milliseconds limit = patience) {
  struct state {
    bool done = false;
    std::exception_ptr failure;
    std::conditional_t<std::is_void_v<T>, std::optional<bool>, std::optional<T>> value;
  };
  auto const result = std::make_shared<state>();
  if constexpr (std::is_void_v<T>) {
    asio::co_spawn(io, std::move(coroutine), [result](std::exception_ptr failure) {
      result->failure = failure;
      result->done = true;
    });
  } else {
    asio::co_spawn(io, std::move(coroutine), [result](std::exception_ptr failure, T value) {
      result->failure = failure;
      if (!failure) result->value.emplace(std::move(value));
      result->done = true;
    });
  }
  if (!run_until(
          io, [&] { return result->done; }, limit))
    throw std::runtime_error("the coroutine did not end in time");
  if (result->failure) std::rethrow_exception(result->failure);
  if constexpr (!std::is_void_v<T>) return std::move(*result->value);
}

// The same on a context of its own. The thread of a client may hold its executor for a moment after the coroutine has
// ended, and so the context lives until nothing is left of that.
template <class T>
T run_coro(asio::awaitable<T> coroutine, std::chrono::milliseconds limit = patience) {
  asio::io_context io;
  struct drain {
    asio::io_context& context;
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    // The last of the work is dropped inside this run(), here or by that thread. A run that finds none returns at once,
    // although the thread that dropped it is still inside the context.
    ~drain() {
      context.restart();
      asio::post(context, [&] { work.reset(); });
      context.run();
    }
  } const at_the_end{io};
  return run_coro(io, std::move(coroutine), limit);
}

// Runs a context on threads of its own until it goes out of scope.
class running_context {
 public:
  explicit running_context(int threads = 1) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~running_context() {
    work_.reset();
    io_.stop();
    for (auto& thread : threads_) thread.join();
  }
  running_context(running_context const&) = delete;
  running_context& operator=(running_context const&) = delete;
  asio::io_context& get() { return io_; }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::vector<std::thread> threads_;
};

}  // namespace latchkey::test
