#pragma once

#include <engine/lock_key.hpp>
#include <engine/loss_listener.hpp>
#include <joint/machine/joint_count.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace latchkey::detail {

class joint_hold;
class joint_lock;
class later;
class joint_task;

// Whoever has it may touch what belongs to a joint lock: its calls, its holds and their parts. It is given up for calls
// of anything else, but for asking how long members last.
using joint_guard = std::unique_lock<std::mutex>;

// What a joint lock has of one member. The member's machine, or the member's own members, show here how long it lasts.
class member_hold final : public loss_listener, public std::enable_shared_from_this<member_hold> {
 public:
  member_hold(std::shared_ptr<joint_lock const> of, std::shared_ptr<lock_key const> key, std::uint64_t owner,
              nanoseconds drift)
      : trust(*this, drift), of_(std::move(of)), key_(std::move(key)), owner_(owner) {}

  // Gives back what it still has.
  ~member_hold();

  void granted(hold_id which) noexcept;

  std::shared_ptr<lock_key const> const& key() const { return key_; }
  hold_id hold() const { return hold_; }

  // Releases in the background.
  void drop() noexcept;
  // It ends with its lease.
  void renew_no_longer() noexcept { key_->renew_no_longer(owner_, hold_); }
  // It was released, or it cannot be.
  void left() noexcept { has_.store(false); }

  std::shared_ptr<loss_listener> self() noexcept override { return weak_from_this().lock(); }
  void tell(error_code const& why) override;
  bool calls_the_user() const noexcept override { return false; }

  // --- guarded ---
  joint_trust trust;
  std::weak_ptr<joint_hold> part_of;
  bool last = false;  // its release left nothing of its owner's

 private:
  std::shared_ptr<joint_lock const> const of_;
  std::shared_ptr<lock_key const> const key_;
  std::uint64_t const owner_;
  hold_id hold_ = 0;
  std::atomic<bool> has_{false};
};

// One hold on a joint lock: those of its members, as long as enough of them last. Loss of too many is loss of all.
class joint_hold final : public composite_hold, public std::enable_shared_from_this<joint_hold> {
 public:
  using part = std::shared_ptr<member_hold>;

  struct terms {
    std::uint64_t owner = 0;
    hold_id id = 0;
    hold_link* link = nullptr;  // told of the loss, until unlink()
  };

  joint_hold(std::shared_ptr<joint_lock const> of, terms what);

  std::uint64_t owner() const { return terms_.owner; }
  hold_id id() const { return terms_.id; }
  // A lease shows it, or a joint lock of which this is a member: nothing else releases it.
  bool leased() const { return terms_.link != nullptr; }

  // --- guarded ---

  // `asking` may still add() members, until it is cancelled at the end. False: lost meanwhile.
  bool begin(joint_guard const& guard, std::vector<part> parts, std::weak_ptr<joint_task> asking);
  // False: it is over.
  bool add(joint_guard const& guard, part late);
  // Its time may have been moved.
  void watch(joint_guard const& guard);

  // --- not guarded ---

  instant until() const override;
  void progress(instant now) override;
  bool lost() const;
  void unlink() override;
  // Ends it: the caller releases what it gets.
  std::vector<part> take();
  std::vector<part> parts() const;
  void lose(error_code const& why);
  // A member was lost.
  void on_lost(error_code const& why);
  // Each part ends with the lease that it has.
  void renew_no_longer() noexcept;

 private:
  void on_time();

  terms const terms_;
  std::shared_ptr<joint_lock const> const of_;
  joint_count<part> count_;
  hold_link* link_;
  std::weak_ptr<joint_task> asking_;
  std::weak_ptr<later> timer_;
};

}  // namespace latchkey::detail
