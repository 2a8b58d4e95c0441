#pragma once

#include <support/raw_redis.hpp>

namespace bench {

// Finds the longest script call that the server runs from now on. The server's list is short and its entries are long,
// so that only calls that are longer than the longest so far are put there.
class slow_calls {
 public:
  explicit slow_calls(latchkey::test::raw_redis& admin);
  ~slow_calls();
  slow_calls(slow_calls const&) = delete;
  slow_calls& operator=(slow_calls const&) = delete;

  // To be called again and again.
  void look();
  double longest_us() const { return longest_; }

 private:
  void listen_above(double us);

  latchkey::test::raw_redis& admin_;
  double longest_ = 0;
};

// Microseconds that the server has spent in script calls by EVALSHA since it was started.
double script_us(latchkey::test::raw_redis& admin);

}  // namespace bench
