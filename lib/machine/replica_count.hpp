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

  void set_connected(std::size_t many, instant now) { set(connected_, many, now); }
  void set_named(std::size_t many, instant now) { set(named_, many, now); }
  // Another server leads.
  void forget_connected() { connected_ = most_ = 0; }
  // One of those that are named leads: it is not missed.
  void promote_one() { named_ -= named_ > 0 ? 1 : 0; }

  std::size_t connected() const { return connected_; }
  std::size_t named() const { return named_; }
  std::size_t all(instant now) const { return std::max(told(), now < after(most_at_, margin) ? most_ : 0); }

 private:
  std::size_t told() const { return std::max(connected_, named_); }
  // What is told of until now is missed from now on.
  void set(std::size_t& which, std::size_t many, instant now) {
    if (told() >= all(now)) {
      most_ = told();
      most_at_ = now;
    }
    which = many;
  }

  std::size_t connected_ = 0, named_ = 0;
  std::size_t most_ = 0;
  instant most_at_{};
};

}  // namespace latchkey::detail
