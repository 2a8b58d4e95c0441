#pragma once

#include <support/unit/fake_server.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace latchkey::test {

// The queues of fair locks on a modelled server, and what the scripts of the fair lock do to them, written anew.
class fake_fair {
 public:
  struct waiter {
    std::string field;
    std::int64_t score;  // milliseconds of the server's clock
  };
  using line = std::deque<waiter>;

  // Must outlive what the server runs.
  void teach(fake_server& server);
  void clear() { lines_.clear(); }

  // Who waits for the lock `k`, in order, with spaces between.
  std::string shown(std::string const& key = "k");
  line& of(std::string const& key = "k") { return lines_[key]; }

 private:
  reply acquire(fake_server& server, words_view keys, words_view a, bool told = false);
  reply release(fake_server& server, words_view keys, words_view a);
  reply hand_off(fake_server& server, words_view keys, words_view a);
  reply force_unlock(fake_server& server, words_view keys);
  reply leave(fake_server& server, words_view keys, words_view a);
  bool evict(fake_server& server, line& waiting);
  void tell(fake_server& server, words_view keys, std::string const& teller = {});

  std::map<std::string, line> lines_;
};

}  // namespace latchkey::test
