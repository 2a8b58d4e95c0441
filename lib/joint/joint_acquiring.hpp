#pragma once

#include <joint/joint_task.hpp>
#include <joint/machine/joint_acquire.hpp>

#include <unordered_map>

namespace latchkey::detail {

class later;

// Performs what a joint_acquire decides.
class joint_acquiring final : public joint_task {
 public:
  joint_acquiring(std::shared_ptr<joint_lock const> of, call& call, bool blocking);

  void begin() noexcept override;
  void cancel(error_code const& why) override;

 private:
  void answered(member_call& call, joint_guard& guard) override;
  instant wake_at() const override { return sleeps_until_; }
  void time(joint_guard& guard, instant now) override;

  void perform(joint_guard& guard) noexcept;
  void perform(joint_acquire::action const& what, joint_guard& guard);
  void ask(joint_acquire::action const& what, joint_guard& guard);
  std::shared_ptr<member_call> call_to(std::size_t member, joint_acquire::attempt id,
                                       joint_acquire::action const& what);
  void sleep(instant until, joint_guard& guard);
  void conclude(joint_guard& guard);
  std::shared_ptr<member_call> take(joint_acquire::attempt id);

  std::uint64_t const owner_;
  milliseconds const lease_;
  milliseconds const max_hold_;
  instant const started_;
  hold_link* const link_;
  std::uint64_t const context_;
  nanoseconds const progress_within_;

  // --- guarded ---
  std::shared_ptr<joint_hold> made_;
  joint_acquire machine_;
  std::unordered_map<joint_acquire::attempt, std::shared_ptr<member_call>> asked_;
  bool performing_ = false;
  instant sleeps_until_ = never;
  std::weak_ptr<later> timer_;
};

}  // namespace latchkey::detail
