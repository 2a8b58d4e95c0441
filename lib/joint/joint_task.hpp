#pragma once

#include <joint/joint_lock.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace latchkey::detail {

class joint_task;

// A call to one member. Lives until it was answered; its hold, if it may get one, is shown there.
class member_call final : public call, public std::enable_shared_from_this<member_call> {
 public:
  member_call(std::shared_ptr<joint_task> task, joint_lock::member key, std::uint64_t number)
      : number_(number), key_(std::move(key)), task_(std::move(task)) {}

  lock_key const& key() const { return *key_; }
  std::uint64_t number() const { return number_; }

  // From now on it keeps itself alive.
  void under_way() { self_ = shared_from_this(); }
  void complete() noexcept override;

  std::shared_ptr<member_hold> hold_shown;

 private:
  std::uint64_t const number_;
  joint_lock::member const key_;
  std::shared_ptr<joint_task> task_;
  std::shared_ptr<member_call> self_;
};

// A call to a joint lock, carried out by calls to its members. Answers come on any thread.
class joint_task : public std::enable_shared_from_this<joint_task> {
 public:
  virtual ~joint_task() = default;

  virtual void begin() noexcept = 0;
  // Of calls that wait; others go on.
  virtual void cancel(error_code const&) {}
  void on_answer(std::shared_ptr<member_call> const& one);

  // Ends what is late at the members, for callers whose executors nobody may be running; answers when to ask again.
  instant expire() noexcept;
  // The blocked caller.
  void wait() noexcept;

 protected:
  // A blocked caller is not told by `complete`, but wakes up in wait().
  joint_task(std::shared_ptr<joint_lock const> of, call& one, bool blocking)
      : of_(std::move(of)), blocking_(blocking), call_(&one) {}

  virtual void answered(member_call& one) = 0;
  // Of the task's own timer.
  virtual instant wake_at() { return never; }
  virtual void time() {}

  void start(std::vector<std::shared_ptr<member_call>> const& all) noexcept;
  // Tells the caller, once.
  template <class Fill>
  void finish(Fill const& fill) noexcept {
    call* told = nullptr;
    {
      std::scoped_lock const lock(mutex_);
      told = std::exchange(call_, nullptr);
    }
    if (!told) return;
    of_->forget(*told);
    {
      std::scoped_lock const lock(mutex_);
      fill(*told);
      finished_ = true;
      if (blocking_) changed_.notify_all();
    }
    if (!blocking_) told->complete();
  }
  // A blocked caller wakes up at that time and sees to what is late.
  void due(instant when);

  std::shared_ptr<joint_lock const> const of_;

 private:
  struct pending {
    std::shared_ptr<member_call> one;
    instant end;
  };

  bool const blocking_;
  std::mutex mutex_;  // guards what follows; held for no call of anything else
  std::condition_variable changed_;
  call* call_;
  std::vector<pending> pending_;
  instant wakes_at_ = never;
  bool finished_ = false;
};

}  // namespace latchkey::detail
