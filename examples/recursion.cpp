// A lock that its owner takes again: an outer and an inner function both need it, and either may be called alone.
// Usage: recursion [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <vector>

namespace {

// [recursion]
class account {
 public:
  explicit account(latchkey::distributed_lock lock) : lock_(lock), mutex_(lock.as_mutex()) {}

  void book(int amount) {
    std::scoped_lock const guard(mutex_);  // calls lock(): waits for others, never for its own thread
    balance_ += amount;
    note_hold_count();
  }
  void book_all(std::vector<int> const& amounts) {
    std::scoped_lock const guard(mutex_);  // nobody comes between two of them
    for (int const amount : amounts) book(amount);
    note_hold_count();
  }
  // [/recursion]

  void note_hold_count() {
    deepest_ = std::max(deepest_, lock_.hold_count());
    std::cout << "balance " << balance_ << ", held " << lock_.hold_count() << " times\n";
  }
  int balance() const { return balance_; }
  int deepest() const { return deepest_; }

 private:
  latchkey::distributed_lock lock_;
  latchkey::std_mutex mutex_;
  int balance_ = 0;
  int deepest_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    latchkey::client const client(argc > 1 ? argv[1] : "embedded:");
    auto const lock = client.get_lock("account:7");
    account mine(lock);
    mine.book(100);
    mine.book_all({-30, -20});
    bool const free = lock.hold_count() == 0 && !lock.is_locked();
    std::cout << (free ? "free again\n" : "still held\n");
    return free && mine.balance() == 50 && mine.deepest() == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "recursion: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
