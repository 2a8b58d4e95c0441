// A lock around a coroutine: with_lock releases on every way out, and ends the body when the lock is lost.
// Usage: coroutines [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

asio::awaitable<void> pause(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

// [with_lock]
asio::awaitable<void> count_stock(latchkey::lease& hold) {
  co_await pause(10ms);  // any awaiting will do; a loss of the lock cancels it
  if (hold.held()) std::cout << "stock counted, by nobody else\n";
}

asio::awaitable<void> count_stock_alone(latchkey::distributed_lock lock) {
  co_await latchkey::with_lock(lock, count_stock, asio::use_awaitable);  // released when this returns
}
// [/with_lock]

// [loss]
asio::awaitable<void> work_for_ever(latchkey::lease&) {
  for (;;) co_await pause(20ms);
}

asio::awaitable<bool> work_until_lost(latchkey::distributed_lock lock) {
  try {
    co_await latchkey::with_lock(lock, work_for_ever, asio::use_awaitable);
  } catch (latchkey::lock_error const& error) {
    co_return error.code() == latchkey::errc::lease_lost;  // the body has ended by now
  }
  co_return false;
}
// [/loss]

// Takes the lock away, as an operator may who thinks that the holder is dead.
asio::awaitable<void> take_away(latchkey::distributed_lock lock) {
  bool removed = false;
  while (!removed) {
    co_await pause(5ms);
    removed = co_await lock.async_force_unlock(asio::use_awaitable);
  }
  std::cout << "the lock was taken away\n";
}

asio::awaitable<void> run(latchkey::client& client, bool& good) {
  auto const lock = client.get_lock("stock");
  co_await count_stock_alone(lock);

  asio::co_spawn(co_await asio::this_coro::executor, take_away(lock), asio::detached);
  good = co_await work_until_lost(lock);
  std::cout << (good ? "and the work under it has ended\n" : "but the work went on\n");
  co_await client.async_close(asio::use_awaitable);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    asio::io_context context;
    latchkey::config settings;
    settings.lock_watchdog_timeout = 600ms;  // a loss is seen at the next renewal, after a third of this
    latchkey::client client(context, argc > 1 ? argv[1] : "embedded:", settings);
    bool good = false;
    asio::co_spawn(context, run(client, good), [](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);
    });
    context.run_for(10s);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "coroutines: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
