#pragma once

#include <engine/lock_key.hpp>
#include <engine/loss_listener.hpp>

#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace latchkey::detail {

class joint_hold;
class joint_lock;
class joint_task;

// How far clocks may run apart during a lease (Redlock's figure).
inline nanoseconds drift_of(milliseconds lease) { return to_nanoseconds(lease) / 100 + milliseconds(2); }

// What a joint lock has of one member. The member's machine, or the member's own members, show here how long it lasts.
class member_hold final : public loss_listener, public std::enable_shared_from_this<member_hold> {
 public:
  member_hold(std::shared_ptr<lock_key const> key, std::uint64_t owner, nanoseconds drift)
      : key_(std::move(key)), owner_(owner), drift_(drift.count()) {}

  // Gives back what it still has.
  ~member_hold();

  void granted(hold_id which) noexcept;
  // From now on its loss is told there; at once if it is lost already.
  void attach(std::shared_ptr<joint_hold> const& to);

  std::shared_ptr<lock_key const> const& key() const { return key_; }
  hold_id hold() const { return hold_; }
  bool is_lost() const { return lost.load(std::memory_order_acquire); }
  // May be trusted until then; a time that has passed if it is lost.
  instant until() const;
  nanoseconds drift() const { return nanoseconds(drift_.load()); }
  // Until the answer it may count on the lease that it had, or already on the new one: the longer drift is taken off.
  void extending(nanoseconds drift);
  void extended(nanoseconds drift, bool done);

  // Releases in the background.
  void drop() noexcept;
  // It ends with its lease.
  void renew_no_longer() noexcept;
  // It was released, or it cannot be.
  void left() noexcept { has_.store(false); }

  std::shared_ptr<loss_listener> self() noexcept override { return weak_from_this().lock(); }
  void tell(error_code const& why) override;
  bool calls_the_user() const noexcept override { return false; }

 private:
  std::shared_ptr<lock_key const> const key_;
  std::uint64_t const owner_;
  std::atomic<nanoseconds::rep> drift_;
  hold_id hold_ = 0;
  std::atomic<bool> has_{false};

  std::mutex mutex_;  // guards what follows
  std::weak_ptr<joint_hold> part_of_;
  bool told_ = false;
  error_code why_;
  int extensions_ = 0;  // under way
};

// One hold on a joint lock: those of its members, as long as enough of them last. Loss of too many is loss of all.
class joint_hold final : public composite_hold, public std::enable_shared_from_this<joint_hold> {
 public:
  using part = std::shared_ptr<member_hold>;

  struct terms {
    std::uint64_t owner = 0;
    hold_id id = 0;
    std::size_t quorum = 0;
    bool has_drift = false;     // it ends before its members do: a timer tells of that
    hold_link* link = nullptr;  // told of the loss, until unlink()
  };

  joint_hold(std::shared_ptr<joint_lock const> of, terms what) : terms_(what), of_(std::move(of)), link_(what.link) {}

  // `asking` may still add() members, until it is cancelled at the end. False: lost meanwhile.
  bool begin(std::vector<part> parts, std::weak_ptr<joint_task> asking);
  // False: it is over.
  bool add(part late);

  std::uint64_t owner() const { return terms_.owner; }
  hold_id id() const { return terms_.id; }
  instant until() const override;
  bool lost() const;
  // A lease shows it, or a joint lock of which this is a member: nothing else releases it.
  bool leased() const { return terms_.link != nullptr; }

  void unlink() override;
  // Ends it: the caller releases what it gets.
  std::vector<part> take();
  std::vector<part> parts() const;

  void lose(error_code const& why);
  // A member was lost.
  void on_lost(error_code const& why);
  // Its time may have been moved.
  void watch();
  // Each part ends with the lease that it has.
  void renew_no_longer() noexcept;

 private:
  static void stop(std::weak_ptr<joint_task> const& asking);
  std::size_t live() const;
  instant until_locked() const;
  void watch_locked();

  terms const terms_;
  mutable std::mutex mutex_;  // guards what follows; held for no call of anything else but until() of members
  std::shared_ptr<joint_lock const> of_;
  hold_link* link_;
  std::vector<part> parts_;
  mutable std::vector<instant> ends_;  // room for one of each
  std::weak_ptr<joint_task> asking_;
  bool ended_ = false;
  bool lost_ = false;
  std::weak_ptr<asio::steady_timer> timer_;
};

}  // namespace latchkey::detail
