#pragma once

#include <joint/joint_task.hpp>
#include <joint/machine/joint_acquire.hpp>

#include <boost/asio/steady_timer.hpp>

#include <unordered_map>

namespace latchkey::detail {

// Performs what a joint_acquire decides.
class joint_acquiring final : public joint_task {
 public:
  joint_acquiring(std::shared_ptr<joint_lock const> of, call& one, bool blocking);

  void begin() noexcept override;
  void cancel(error_code const& why) override;

 private:
  using part = std::shared_ptr<member_hold>;

  void answered(member_call& one) override;
  instant wake_at() override;
  void time() override;

  template <class Step>
  void step(Step&& next) noexcept;
  void perform(joint_acquire::action const& what);
  void ask(joint_acquire::action const& what);
  void sleep(instant until);
  void conclude();
  bool begin_hold(std::vector<part> const& parts, error_code& error);
  std::shared_ptr<member_call> take(joint_acquire::attempt id);

  std::uint64_t const owner_;
  milliseconds const lease_;
  milliseconds const max_hold_;
  instant const started_;
  hold_link* const link_;
  std::shared_ptr<joint_hold> made_;  // of whoever performs

  std::mutex deciding_;  // guards what follows; held for no call of anything else
  joint_acquire machine_;
  std::unordered_map<joint_acquire::attempt, std::shared_ptr<member_call>> asked_;
  bool performing_ = false;
  instant sleeps_until_ = never;
  std::weak_ptr<asio::steady_timer> timer_;
};

}  // namespace latchkey::detail
