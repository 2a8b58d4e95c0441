#pragma once

#include <joint/joint_task.hpp>
#include <joint/machine/joint_vote.hpp>

namespace latchkey::detail {

// Asks all members the same and makes one answer of theirs: a release, an extension, a question.
class joint_gathering final : public joint_task {
 public:
  // `ended`: the hold that is released or extended. A release has taken its parts already.
  joint_gathering(std::shared_ptr<joint_lock const> of, call& one, bool blocking, std::shared_ptr<joint_hold> about,
                  std::vector<std::shared_ptr<member_hold>> parts);

  void begin() noexcept override;

 private:
  void answered(member_call& one) override;
  std::shared_ptr<member_call> question(joint_lock::member const& key, std::shared_ptr<member_hold> const& part);
  std::int64_t worth_of(member_call const& one) const;
  void fill(call& told) noexcept;

  operation::type const what_;
  query const question_;
  std::uint64_t const owner_;
  milliseconds const lease_;
  std::shared_ptr<joint_hold> const about_;
  std::vector<std::shared_ptr<member_hold>> const parts_;

  std::mutex counting_;  // guards what follows
  joint_vote vote_;
  bool over_ = false;
  error_code error_;
  std::string text_;
};

}  // namespace latchkey::detail
