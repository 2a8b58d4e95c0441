#pragma once

#include <torture/slot.hpp>

namespace latchkey::torture {

// A holder at work who asks now and then whether he still holds, as docs/safety.md says that he is to.
template <class Holding>
class watch {
 public:
  watch(Holding const& held, std::int64_t work) : held_(held), end_(now() + work), lost_(held.lost()) {}

  // Asks once. True: the work goes on, and pause() says how long until the next question.
  bool look() {
    auto const at = now();
    // The time is read before the question, so that he was right to trust at that time.
    if (!gone_ && held_.held())
      trusted_ = at;
    else
      gone_ = true;
    if (lost_.stop_requested()) told_ |= told_by_lost;
    if (!gone_) return at < end_ && !(told_ & told_by_lost);
    told_ |= told_by_held;
    if (told_ & told_by_lost) return false;
    // Counted and not timed: the process may be stopped for a while.
    if (++looks_without_ < most_looks) return true;
    told_ |= told_silently;
    return false;
  }
  milliseconds pause() const { return milliseconds(gone_ ? 1 : 2); }

  std::int64_t trusted() const { return trusted_; }
  std::uint32_t told() const { return told_; }

 private:
  static constexpr int most_looks = 3'000;

  Holding const& held_;
  std::int64_t const end_;
  std::stop_token const lost_;
  std::int64_t trusted_ = 0;
  std::uint32_t told_ = told_not;
  bool gone_ = false;
  int looks_without_ = 0;
};

// Who holds nothing and believes that he does.
struct pretended {
  bool held() const { return true; }
  std::stop_token lost() const { return {}; }
};

}  // namespace latchkey::torture
