#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisContext;

namespace bench {

// The server's cap: pairs of as many locks as are wanted, one lock a call, over one connection that is never empty.
class pipeline {
 public:
  pipeline(std::uint16_t port, std::string const& prefix, int locks);
  ~pipeline();

  // Pairs per second, measured for about this long.
  double pairs_per_second(double seconds);

 private:
  void send_chunk();
  void receive_chunk();

  std::unique_ptr<redisContext, void (*)(redisContext*)> connection_;
  std::vector<std::string> chunks_;  // bytes of some acquires and their releases
  std::size_t next_ = 0;
};

}  // namespace bench
