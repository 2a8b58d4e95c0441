#pragma once

#include <joint/joint_lock.hpp>
#include <joint/machine/joint_answer.hpp>

#include <condition_variable>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace latchkey::detail {

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
  void on_answer(std::shared_ptr<member_call> const& call) noexcept;

  // Ends what is late at the members, for callers whose executors nobody may be running; answers when to ask again.
  instant expire() noexcept;
  // The blocked caller.
  void wait() noexcept;

 protected:
  // A blocked caller is not told by `complete`, but wakes up in wait().
  joint_task(std::shared_ptr<joint_lock const> of, call& call, bool blocking)
      : of_(std::move(of)), blocking_(blocking), call_(&call) {}

  // --- guarded ---

  virtual void answered(member_call& call, joint_guard& guard) = 0;
  // Of the task's own timer.
  virtual instant wake_at() const { return never; }
  virtual void time(joint_guard&, instant) {}

  void start(std::vector<std::shared_ptr<member_call>> const& all, joint_guard& guard) noexcept;
  // Tells the caller, once.
  template <class Fill>
  void finish(joint_guard& guard, Fill const& fill) noexcept {
    call* const told = std::exchange(call_, nullptr);
    if (!told) return;
    of_->forget(guard, *told);
    fill(*told);
    finished_ = true;
    if (blocking_) {
      over_.set();
      return changed_.notify_all();
    }
    guard.unlock();
    told->complete();
    guard.lock();
  }
  // Is there a call of the same member, which stands there twice, that it has not answered yet?
  bool awaits(lock_key const& member) const;
  // A blocked caller wakes up at that time and sees to what is late.
  void due(joint_guard const& guard, instant when);

  std::shared_ptr<joint_lock const> const of_;

 private:
  struct pending {
    std::shared_ptr<member_call> call;
    instant end;
  };

  // The lane of a client, for calls to its names, which only the blocked caller's own thread borrows. While one is lent
  // nothing else of the task is under way.
  struct borrowing {
    core* from = nullptr;  // null: none
    core::loan taken{};
    instant end = never;
    std::vector<std::shared_ptr<member_call>> calls{};
  };
  bool may_borrow(std::vector<std::shared_ptr<member_call>> const& all, instant end) const;
  void drive(joint_guard& guard) noexcept;

  bool const blocking_;
  std::thread::id const caller_ = std::this_thread::get_id();
  borrowing lent_;  // of the caller's thread
  wake_flag over_;
  std::condition_variable changed_;
  call* call_;
  std::vector<pending> pending_;
  instant wakes_at_ = never;
  bool finished_ = false;
};

// Asks all members the same and makes one answer of theirs: a release, an extension, a question.
class joint_gathering final : public joint_task {
 public:
  // `about`: the hold that is released or extended. A release has taken its parts already.
  joint_gathering(std::shared_ptr<joint_lock const> of, call& call, bool blocking, std::shared_ptr<joint_hold> about,
                  std::vector<std::shared_ptr<member_hold>> parts);

  void begin() noexcept override;

 private:
  void answered(member_call& call, joint_guard& guard) override;
  // Is it still held only by what the same release leaves as well?
  bool others_leave(lock_key const& member) const;
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
