#pragma once

#include <latchkey/boost_guard.hpp>

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace latchkey {

using std::chrono::milliseconds;

/// How long a call may wait, or a lease lasts: what functions take, so that any `std::chrono` duration can be given.
///
/// Whole milliseconds, rounded up: who gives 100 us is not answered after 0 ms. What is longer than
/// `milliseconds::max()` becomes that, which as a wait is for ever; what is less than `milliseconds::min()` becomes
/// that. A duration that is not a number is zero. Zero or less is one attempt as a wait, and `errc::bad_argument` as
/// a lease; so is a lease of more than ten years.
class timespan {
 public:
  /// Zero.
  constexpr timespan() noexcept = default;
  /// Rounded up, saturating.
  template <class Rep, class Period>
  constexpr timespan(std::chrono::duration<Rep, Period> length) noexcept
      : length_(rounded_up<Period>(length.count())) {}

  /// The rounded length.
  constexpr operator milliseconds() const noexcept { return length_; }
  /// How many milliseconds.
  constexpr milliseconds::rep count() const noexcept { return length_.count(); }

  /// By length.
  friend constexpr bool operator==(timespan, timespan) noexcept = default;
  /// By length.
  friend constexpr std::strong_ordering operator<=>(timespan a, timespan b) noexcept { return a.count() <=> b.count(); }

 private:
  template <class Period>
  using per_millisecond = std::ratio_divide<Period, std::milli>;

  // In whole numbers, so that nothing is lost: the quotient and the rest apart, since their product may overflow.
  template <class Period, std::integral Rep>
  static constexpr milliseconds rounded_up(Rep count) noexcept {
    constexpr std::intmax_t num = per_millisecond<Period>::num;
    constexpr std::intmax_t den = per_millisecond<Period>::den;
    constexpr std::intmax_t most = milliseconds::max().count();
    using wide = std::conditional_t<std::signed_integral<Rep>, std::intmax_t, std::uintmax_t>;
    auto const ticks = static_cast<wide>(count);
    wide const whole = ticks / static_cast<wide>(den);
    auto const rest = static_cast<std::intmax_t>(ticks % static_cast<wide>(den));
    if (whole >= static_cast<wide>(most / num)) return milliseconds::max();
    auto const signed_whole = static_cast<std::intmax_t>(whole);
    if (signed_whole <= -(most / num)) return milliseconds::min();
    return milliseconds(signed_whole * num + rest_rounded_up(rest, num, den));
  }

  // Of `rest / den` ticks, less than one of them.
  static constexpr std::intmax_t rest_rounded_up(std::intmax_t rest, std::intmax_t num, std::intmax_t den) noexcept {
    if (num == 1) return rest > 0 ? 1 : 0;
    auto const exact = static_cast<long double>(rest) * static_cast<long double>(num) / static_cast<long double>(den);
    auto const cut = static_cast<std::intmax_t>(exact);
    return static_cast<long double>(cut) < exact ? cut + 1 : cut;
  }

  // In the type of the duration: 1.1 s of it is 1100 ms, though its binary value is a little more.
  template <class Period, class Rep>
  static constexpr milliseconds rounded_up(Rep count) noexcept {
    constexpr auto num = static_cast<Rep>(per_millisecond<Period>::num);
    constexpr auto den = static_cast<Rep>(per_millisecond<Period>::den);
    Rep const exact = count * num / den;
    constexpr auto beyond = -static_cast<Rep>(milliseconds::min().count());  // a power of two: exact in any type
    if (exact >= beyond) return milliseconds::max();
    if (!(exact > -beyond)) return exact <= -beyond ? milliseconds::min() : milliseconds::zero();
    auto const cut = static_cast<milliseconds::rep>(exact);
    return milliseconds(static_cast<Rep>(cut) < exact ? cut + 1 : cut);
  }

  milliseconds length_{0};
};

}  // namespace latchkey
