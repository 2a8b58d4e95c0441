#pragma once

#include <machine/actions.hpp>

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace latchkey::detail {

// Events on their way to config::on_event on another thread, in their order. Bounded: where the listener is too slow
// the newest are left out, and a warning says how many; ends of holds only when many more wait.
class event_queue {
 public:
  static constexpr std::size_t most = 4'096, most_with_ends = 16 * most;

  // Takes them over. True: nobody is delivering, and the caller is to see to that.
  bool push(std::vector<note>& notes) noexcept;
  // The next for whoever delivers; none: there is nothing left, and he delivers no longer.
  std::optional<note> next();
  // Whoever waits for the listener has no more time: what has not been delivered is left out.
  void abandon() noexcept;

 private:
  void add(note& one) noexcept;

  std::mutex mutex_;
  std::deque<note> notes_;
  std::size_t left_out_ = 0;
  bool delivering_ = false;
};

}  // namespace latchkey::detail
