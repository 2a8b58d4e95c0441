#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace latchkey::detail {

// Makes one answer of those of many members: the best that a quorum of them reaches. Higher is better, and who
// failed counts as `failed`. With all of them needed it is the least.
class joint_vote {
 public:
  static constexpr std::int64_t failed = -1;

  joint_vote(std::size_t members, std::size_t quorum) : missing_(members), quorum_(quorum) {}

  void add(std::int64_t worth) {
    said_.push_back(worth);
    --missing_;
  }

  bool complete() const { return missing_ == 0; }
  // No answer that is still to come can change the result.
  bool decided() const { return with_missing(failed) == with_missing(std::numeric_limits<std::int64_t>::max()); }
  std::int64_t result() const { return with_missing(failed); }

 private:
  std::int64_t with_missing(std::int64_t worth) const {
    std::vector<std::int64_t> all = said_;
    all.insert(all.end(), missing_, worth);
    if (all.size() < quorum_) return failed;
    auto const last = all.begin() + static_cast<std::ptrdiff_t>(quorum_ - 1);
    std::nth_element(all.begin(), last, all.end(), std::greater<>());
    return *last;
  }

  std::size_t missing_;
  std::size_t const quorum_;
  std::vector<std::int64_t> said_;
};

}  // namespace latchkey::detail
