#pragma once

#include <joint/joint_task.hpp>
#include <joint/machine/joint_answer.hpp>

namespace latchkey::detail {

// Asks all members the same and makes one answer of theirs: a release, an extension, a question.
class joint_gathering final : public joint_task {
 public:
  // `about`: the hold that is released or extended. A release has taken its parts already.
  joint_gathering(std::shared_ptr<joint_lock const> of, call& one, bool blocking, std::shared_ptr<joint_hold> about,
                  std::vector<std::shared_ptr<member_hold>> parts);

  void begin() noexcept override;

 private:
  void answered(member_call& one, joint_guard& guard) override;
  std::shared_ptr<member_call> question(joint_lock::member const& key, std::shared_ptr<member_hold> const& part);

  operation::type const what_;
  query const question_;
  std::uint64_t const owner_;
  milliseconds const lease_;
  std::shared_ptr<joint_hold> const about_;
  std::vector<std::shared_ptr<member_hold>> const parts_;
  joint_answer answer_;  // guarded
};

}  // namespace latchkey::detail
