#include "contenders.hpp"

#include <latchkey/latchkey.hpp>

namespace demo {
namespace {

// One client for all threads of this process, connected before the clock starts, as the other connections are.
latchkey::client connected_client(worker const& self) {
  latchkey::client client("unix://" + self.socket_path());
  static_cast<void>(client.get_lock(lock_key).is_locked());
  return client;
}

// Nothing may be written under a lock that is no longer ours.
void require_held(latchkey::lease const& hold) {
  if (!hold.held()) throw latchkey::lock_error(latchkey::errc::lease_lost);
}

// A request of two functions that both need the lock, and either of which may be called alone.
class recursive_request {
 public:
  recursive_request(latchkey::distributed_lock lock, shop& counter) : lock_(std::move(lock)), shop_(counter) {}

  void operator()(request& wanted) const {
    if (!lock_.try_lock(wanted.ms_left())) return wanted.gave_up();
    wanted.granted();
    bool const bought = sell();
    lock_.unlock();
    wanted.done(bought);
  }

 private:
  bool sell() const {
    lock_.lock();
    bool const bought = shop_.sell_one();
    lock_.unlock();
    return bought;
  }

  latchkey::distributed_lock lock_;
  shop& shop_;
};

}  // namespace

void run_latchkey_threads(worker& self) {
  auto const client = connected_client(self);
  run_threads(self, [lock = client.get_lock(lock_key)](shop& counter, std::uint32_t) {
    return [&counter, lock](request& wanted) {
      auto hold = lock.acquire({.wait = wanted.ms_left()});
      if (!hold) return wanted.gave_up();
      wanted.granted();
      bool const bought = counter.sell_one([&] { require_held(hold); });
      if (hold.release() != latchkey::release_result::released) return wanted.lost();
      wanted.done(bought);
    };
  });
}

void run_latchkey_recursion(worker& self) {
  auto const client = connected_client(self);
  run_threads(self, [lock = client.get_lock(lock_key)](shop& counter, std::uint32_t) {
    return recursive_request(lock, counter);
  });
}

}  // namespace demo
