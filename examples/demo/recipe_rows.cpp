#include "contenders.hpp"
#include "rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>

namespace demo {
namespace {

using clock = std::chrono::steady_clock;

// Long enough to outlive every row but the slowest: what the rows show is the retrying, not leases that run out.
constexpr std::chrono::milliseconds recipe_lease{30'000};

// The widely copied lock: SET NX PX to take it, try again until it works, compare and delete to give it back.
class recipe_lock {
 public:
  recipe_lock(redis& connection, std::string token, retry_rule const& rule)
      : redis_(connection), token_(std::move(token)), rule_(rule) {}

  // False: the time was over first.
  bool lock(request const& wanted) {
    auto const first_attempt = clock::now();
    while (!redis_.set_if_absent(lock_key, token_, recipe_lease)) {
      auto const left = wanted.time_left();
      if (left <= left.zero()) return false;
      switch (pause_now(rule_, clock::now() - first_attempt)) {
        case pause_kind::none: break;
        case pause_kind::yield: std::this_thread::yield(); break;
        case pause_kind::sleep:
          std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(rule_.sleep, left));
          break;
      }
    }
    return true;
  }

  void unlock() { redis_.compare_and_delete(lock_key, token_); }

 private:
  redis& redis_;
  std::string token_;
  retry_rule rule_;
};

}  // namespace

void run_no_lock(worker& self) {
  run_threads(self, [](shop& counter, std::uint32_t) {
    return [&counter](request& wanted) {
      wanted.granted();
      wanted.done(counter.sell_one());
    };
  });
}

void run_recipe(worker& self) {
  auto const rule = all_rows()[self.shared()->row].retry;
  run_threads(self, [&](shop& counter, std::uint32_t number) {
    auto const token = std::to_string(self.index()) + ":" + std::to_string(number);
    return [&counter, lock = recipe_lock(counter.connection(), token, rule)](request& wanted) mutable {
      if (!lock.lock(wanted)) return wanted.gave_up();
      wanted.granted();
      bool const bought = counter.sell_one();
      lock.unlock();
      wanted.done(bought);
    };
  });
}

}  // namespace demo
