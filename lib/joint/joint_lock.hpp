#pragma once

#include <engine/attachments.hpp>
#include <engine/lock_key.hpp>
#include <joint/joint_hold.hpp>
#include <joint/machine/joint_rules.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace latchkey::detail {

class joint_task;

// A lock of several members, of which all or a majority make the lock. It has no keys of its own: what is done with
// it is done with its members, by their clients. Equal handles share one of these.
class joint_lock final : public lock_key, public attachment, public std::enable_shared_from_this<joint_lock> {
 public:
  using member = std::shared_ptr<lock_key const>;

  joint_lock(std::shared_ptr<core> engine, std::string name, std::vector<member> members, bool majority);

  std::vector<member> const& members() const { return members_; }
  joint_rules const& rules() const { return rules_; }
  // How its members are asked for a hold of this length.
  joint_rules rules_for(milliseconds lease, milliseconds max_hold) const;
  joint_guard guard() const { return joint_guard(mutex_); }

  // --- calls ---
  void start(call& call) const override;
  void run(blocking_call& call, std::stop_token const& stop) const override;
  void cancel(call& call) const override;
  instant expire(call& call) const override;
  void drop(std::uint64_t owner, hold_id hold) const override;
  void renew_no_longer(std::uint64_t owner, hold_id hold) const override;

  bool keeps_out(std::uint64_t owner) const override;
  std::string_view refuses(operation::type what, query question) const override;
  nanoseconds drift(milliseconds lease) const override { return rules_.drift(lease); }
  bool forked() const override;
  bool inside() const override;
  instant budget_end(instant start) const override;
  milliseconds watchdog_time() const override;

  // --- the end of the client, or of a thread ---
  void closing() noexcept override;
  void thread_ended() noexcept override;
  void closed() noexcept override;

  // --- of its calls and holds ---
  // False: the client closes.
  bool add(joint_guard const& guard, std::shared_ptr<joint_hold> made) const;
  // It was lost; kept for the unlock of its owner, but not too many of them.
  void on_lost(joint_hold& hold) const;

  // The call is over and its address may be used again.
  void forget(joint_guard const& guard, call const& call) const;

 private:
  std::shared_ptr<joint_task> task_for(call& call, bool blocking) const;
  std::shared_ptr<joint_task> ask_all(call& call, bool blocking, std::shared_ptr<joint_hold> about,
                                      std::vector<std::shared_ptr<member_hold>> parts) const;
  std::shared_ptr<joint_task> keep(call& call, bool blocking, std::shared_ptr<joint_task> made) const;
  std::shared_ptr<joint_task> task_of(call const& call) const;
  std::vector<std::shared_ptr<joint_hold>> all_holds() const noexcept;
  std::shared_ptr<joint_hold> find(std::uint64_t owner, hold_id wanted) const;
  std::shared_ptr<joint_hold> remove(std::uint64_t owner, hold_id wanted) const;
  bool has_hold(std::uint64_t owner) const;

  std::vector<member> const members_;
  joint_rules const rules_;

  std::atomic<bool> closing_{false};
  // A handle is const, what is under way and held is not.
  mutable std::mutex mutex_;  // guards what follows, and what belongs to its tasks and holds
  mutable std::unordered_map<call const*, std::shared_ptr<joint_task>> tasks_;
  mutable std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<joint_hold>>>
      holds_;                                                   // in the order of their grants
  mutable std::deque<std::pair<std::uint64_t, hold_id>> lost_;  // that no lease shows
};

}  // namespace latchkey::detail
