#pragma once

#include "redis.hpp"

#include <chrono>
#include <thread>

namespace demo {

inline constexpr char const* stock_key = "stock";
inline constexpr char const* lock_key = "stock:lock";

/// Sells from the stock: read it, think, write back one less. Alone it is right; two at a time lose sales.
class shop {
 public:
  shop(std::string const& socket_path, std::chrono::microseconds think) : redis_(socket_path), think_(think) {}

  long long read_stock() { return redis_.get_number(stock_key); }
  void write_stock(long long value) { redis_.set_number(stock_key, value); }
  std::chrono::microseconds think_time() const { return think_; }

  /// The whole sale. `still_allowed()` is asked before the write. False: nothing left, nothing sold.
  template <class Allowed>
  bool sell_one(Allowed still_allowed) {
    auto const stock = read_stock();
    if (stock <= 0) return false;
    std::this_thread::sleep_for(think_);
    still_allowed();
    write_stock(stock - 1);
    return true;
  }
  bool sell_one() {
    return sell_one([] {});
  }

  /// Its connection, for recipes: they lock with what they work with.
  redis& connection() { return redis_; }

 private:
  redis redis_;
  std::chrono::microseconds think_;
};

}  // namespace demo
