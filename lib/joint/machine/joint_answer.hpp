#pragma once

#include <machine/operation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
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
      auto const as_good = std::count_if(said_.begin(), said_.end(), [&](std::int64_t said) { return said >= least; });
      return static_cast<std::size_t>(as_good) + (worth >= least ? missing_ : 0) >= quorum_;
    };
    std::int64_t best = missing_ > 0 && reached(worth) ? worth : failed;
    for (std::int64_t const said : said_)
      if (said > best && reached(said)) best = said;
    return best;
  }

  std::size_t missing_;
  std::size_t const quorum_;
  std::vector<std::int64_t> said_;
};

// Makes one answer of what the members of a joint lock say to a release, an extension or a question.
class joint_answer {
 public:
  // `early`: a majority decides, whatever is still to come. Else all are heard before anything is said.
  joint_answer(operation::type what, std::size_t asked, std::size_t quorum, bool early)
      : what_(what), early_(early), vote_(asked, quorum) {}

  // True, once: now it is decided.
  bool add(operation const& said);
  void fill(operation& told) noexcept;

 private:
  std::int64_t worth_of(operation const& call) const;

  operation::type const what_;
  bool const early_;
  joint_vote vote_;
  bool decided_ = false;
  error_code error_;
  std::string text_;
};

}  // namespace latchkey::detail
