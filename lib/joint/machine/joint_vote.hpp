#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace latchkey::detail {

// Makes one answer of those of many members: the best that a quorum of them reaches. Higher is better, and who
// failed counts as `failed`. With all of them needed it is the least.
class joint_vote {
 public:
  static constexpr std::int64_t failed = -1;

  joint_vote(std::size_t members, std::size_t quorum) : missing_(members), quorum_(quorum) { said_.reserve(members); }

  void add(std::int64_t worth) {
    said_.push_back(worth);
    --missing_;
  }

  bool complete() const { return missing_ == 0; }
  // No answer that is still to come can change the result.
  bool decided() const { return with_missing(failed) == with_missing(std::numeric_limits<std::int64_t>::max()); }
  std::int64_t result() const { return with_missing(failed); }

 private:
  // Takes no memory, since whoever tells a caller may not throw.
  std::int64_t with_missing(std::int64_t worth) const {
    auto const reached = [&](std::int64_t least) {
      auto const as_good = std::count_if(said_.begin(), said_.end(), [&](std::int64_t one) { return one >= least; });
      return static_cast<std::size_t>(as_good) + (worth >= least ? missing_ : 0) >= quorum_;
    };
    std::int64_t best = missing_ > 0 && reached(worth) ? worth : failed;
    for (std::int64_t const one : said_)
      if (one > best && reached(one)) best = one;
    return best;
  }

  std::size_t missing_;
  std::size_t const quorum_;
  std::vector<std::int64_t> said_;
};

}  // namespace latchkey::detail
