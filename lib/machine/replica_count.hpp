#pragma once

#include <base/instant.hpp>

#include <algorithm>
#include <cstddef>

namespace latchkey::detail {

// How many replicas a server has, by its own word and by that of others. These may not have heard yet of one that
// follows; when that is cut off, the server does not count it any more either.
class replica_count {
 public:
  static constexpr milliseconds margin{10'000};  // for so long one that is told of no more is missed

  void say_connected(std::size_t many, instant now) {
    note(now);  // until now
    connected_ = many;
    note(now);
  }
  void say_named(std::size_t many, instant now) {
    note(now);
    named_ = many;
    note(now);
  }
  // Another server leads.
  void begin() { connected_ = most_ = 0; }

  std::size_t connected() const { return connected_; }
  std::size_t named() const { return named_; }
  std::size_t all(instant now) const { return std::max(told(), now < after(most_at_, margin) ? most_ : 0); }

 private:
  std::size_t told() const { return std::max(connected_, named_); }
  void note(instant now) {
    if (told() < all(now)) return;
    most_ = told();
    most_at_ = now;
  }

  std::size_t connected_ = 0, named_ = 0;
  std::size_t most_ = 0;
  instant most_at_{};
};

}  // namespace latchkey::detail
