#include "contenders.hpp"

#include <latchkey/latchkey.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace demo {
namespace {

namespace asio = boost::asio;

// All requests of this process run in one thread. Only one of them has the lock, so one connection to the shop is
// enough, and its short blocking calls keep nobody waiting who could go on; the thinking is a timer.
asio::awaitable<void> serve(latchkey::distributed_lock const& lock, shop& counter, request& wanted) {
  latchkey::acquire_options options;
  options.wait = wanted.ms_left();
  auto hold = co_await lock.async_acquire(options, asio::use_awaitable);
  if (!hold) co_return wanted.gave_up();
  wanted.granted();

  auto const stock = counter.read_stock();
  if (stock > 0) {
    asio::steady_timer thinking(co_await asio::this_coro::executor, counter.think_time());
    co_await thinking.async_wait(asio::use_awaitable);
    if (!hold.held()) co_return wanted.lost();
    counter.write_stock(stock - 1);
  }

  auto const released = co_await hold.async_release(asio::use_awaitable);
  if (released != latchkey::release_result::released) co_return wanted.lost();
  wanted.done(stock > 0);
}

asio::awaitable<void> contend(worker& self, latchkey::distributed_lock lock, shop& counter) {
  while (auto wanted = next_request(self.shared())) {
    try {
      co_await serve(lock, counter, *wanted);
    } catch (std::exception const& error) {
      note_error(self.record(), error.what());
      wanted->failed();
      co_return;
    }
  }
}

}  // namespace

void run_latchkey_coroutines(worker& self) {
  asio::io_context context(1);
  latchkey::client client(context, "unix://" + self.socket_path());
  shop counter(self.socket_path(), self.think());
  auto const lock = client.get_lock(lock_key);

  // Connect before the clock starts, as the other rows do.
  bool connected = false;
  latchkey::error_code connect_error;
  lock.async_is_locked([&](latchkey::error_code error, bool) {
    connected = true;
    connect_error = error;
  });
  while (!connected) context.run_one();
  if (connect_error) throw latchkey::lock_error(connect_error);

  self.ready_and_wait();
  auto running = self.share();
  for (std::uint32_t i = 0; i < self.share(); ++i) {
    asio::co_spawn(context, contend(self, lock, counter), [&running](std::exception_ptr) { --running; });
  }
  while (running > 0) context.run_one();
  self.finished();
}

}  // namespace demo
