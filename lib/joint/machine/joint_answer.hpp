#pragma once

#include <joint/machine/joint_vote.hpp>
#include <machine/operation.hpp>

#include <string>

namespace latchkey::detail {

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
  std::int64_t worth_of(operation const& one) const;

  operation::type const what_;
  bool const early_;
  joint_vote vote_;
  bool decided_ = false;
  error_code error_;
  std::string text_;
};

}  // namespace latchkey::detail
