// A cache that many read and one of them refills: readers share a read/write lock, whoever finds the cache stale takes
// the write lock, and all others find it fresh afterwards.
// Usage: cache_refill [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

class price_list {
 public:
  explicit price_list(latchkey::client const& client) : lock_(client.get_read_write_lock("prices")) {}

  // [read_write]
  int price() {
    for (;;) {
      {
        auto const reading = lock_.read_lock().acquire();  // beside any number of other readers
        if (cached_) return *cached_;
      }
      // The read lock is given back first: an owner of a read lock who asks for the write lock would wait for himself.
      auto const writing = lock_.write_lock().acquire();
      if (!cached_) refill();  // whoever came first has done it for all
    }
  }
  // [/read_write]

  int refills() const { return refills_; }

 private:
  void refill() {
    std::this_thread::sleep_for(50ms);  // as if it asked somebody slow
    cached_ = 42;
    ++refills_;
  }

  latchkey::read_write_lock lock_;
  std::optional<int> cached_;
  int refills_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    price_list prices(client);
    {
      std::vector<std::jthread> shoppers;
      for (int i = 0; i < 20; ++i) shoppers.emplace_back([&] { prices.price(); });
    }
    std::cout << "20 readers, " << prices.refills() << " refill\n";
    return prices.refills() == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "cache_refill: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
