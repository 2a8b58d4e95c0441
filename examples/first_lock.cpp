// First steps for programs that block: a lease, the guards of the standard library, a future.
// Usage: first_lock [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <mutex>

using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

void print_invoice(int number) { std::cout << "invoice " << number << " printed, by nobody else\n"; }

// [connect]
// For a readiness probe, and before the first request: the connections are there when this returns true.
bool is_ready(latchkey::client const& client) try {
  client.connect(500ms);
  return true;
} catch (latchkey::lock_error const& error) {
  std::cerr << "not ready: " << error.what() << "\n";  // with the server's words: LOADING, WRONGPASS, no route
  return false;
}
// [/connect]

void with_a_lease(latchkey::client const& client) {
  // [first_lock]
  auto const lock = client.get_lock("invoice:42");
  if (auto hold = lock.acquire({.wait = 5s})) {
    // Renewed in the background for as long as it takes. Ask before every side effect:
    if (hold.held()) print_invoice(42);
  } else {
    std::cout << "somebody else works on it\n";
  }  // released here at the latest, in the background
  // [/first_lock]
}

void with_a_guard(latchkey::client const& client) {
  // [scoped_lock]
  auto orders = client.get_lock("orders").as_mutex();
  auto stock = client.get_lock("stock").as_mutex();
  std::scoped_lock const both(orders, stock);  // takes them without a deadlock, whatever the order
  print_invoice(43);
  // [/scoped_lock]
}

void with_a_future(latchkey::client const& client) {
  // [use_future]
  auto const lock = client.get_lock("invoice:44");
  std::future<latchkey::lease> soon = lock.async_acquire({.wait = 5s}, asio::use_future);
  std::cout << "doing something else meanwhile\n";
  latchkey::lease hold = soon.get();
  if (hold.held()) print_invoice(44);
  std::future<latchkey::release_result> gone = hold.async_release(asio::use_future);
  // [/use_future]
  if (gone.get() == latchkey::release_result::released) std::cout << "released\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    if (!is_ready(client)) return EXIT_FAILURE;
    with_a_lease(client);
    with_a_guard(client);
    with_a_future(client);
    return EXIT_SUCCESS;
  } catch (std::exception const& error) {
    std::cerr << "first_lock: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
