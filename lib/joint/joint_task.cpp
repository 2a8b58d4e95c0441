#include <joint/joint_task.hpp>

#include <base/clock.hpp>

#include <algorithm>

namespace latchkey::detail {

void member_call::complete() noexcept {
  auto const self = std::move(self_);
  auto const task = std::move(task_);
  if (what == type::acquire && yes) hold_shown->granted(hold);
  task->on_answer(self);
}

namespace {

// Calls to names of one client start in one step, so that they leave together.
void start_all(std::vector<std::shared_ptr<member_call>> const& all) {
  auto const client_of = [](auto const& one) { return one->key().which ? one->key().engine.get() : nullptr; };
  for (auto next = all.begin(); next != all.end(); ++next) {
    core* const client = client_of(*next);
    auto const same = [&](auto const& other) { return client_of(other) == client; };
    if (!client) {
      (*next)->key().start(**next);
    } else if (std::none_of(all.begin(), next, same)) {
      std::vector<call*> these;
      for (auto const& one : all)
        if (same(one)) these.push_back(one.get());
      client->start(these);
    }
  }
}

}  // namespace

void joint_task::start(std::vector<std::shared_ptr<member_call>> const& all, joint_guard& guard) noexcept {
  instant first = never;
  pending_.reserve(pending_.size() + all.size());
  for (auto const& one : all) {
    one->under_way();
    pending_.push_back({one, one->deadline});
    first = std::min(first, one->deadline);
  }
  due(guard, first);
  guard.unlock();
  start_all(all);
  guard.lock();
}

void joint_task::on_answer(std::shared_ptr<member_call> const& one) noexcept {
  auto guard = of_->guard();
  std::erase_if(pending_, [&](pending const& entry) { return entry.one == one; });
  answered(*one, guard);
}

void joint_task::due(joint_guard const&, instant when) {
  if (when >= wakes_at_) return;
  wakes_at_ = when;
  changed_.notify_all();
}

instant joint_task::expire() noexcept {
  instant const now = boot_now();
  std::vector<std::shared_ptr<member_call>> late;
  auto guard = of_->guard();
  if (wake_at() <= now) time(guard);
  for (auto const& one : pending_)
    if (one.end <= now) late.push_back(one.one);
  for (auto const& one : late) {
    guard.unlock();
    // One that is just being told so is not asked in a loop.
    instant const end = std::max(one->key().expire(*one), after(now, milliseconds(1)));
    guard.lock();
    for (auto& entry : pending_)
      if (entry.one == one) entry.end = end;
  }
  instant next = wake_at();
  for (auto const& one : pending_) next = std::min(next, one.end);
  return next;
}

void joint_task::wait() noexcept {
  auto guard = of_->guard();
  while (!finished_) {
    instant const end = wakes_at_;
    // In slices: its clock stands still while the machine is suspended.
    nanoseconds const most = longest_sleep(std::chrono::seconds(1));
    nanoseconds const sleep = std::clamp<nanoseconds>(end - boot_now(), nanoseconds(0), most);
    if (changed_.wait_for(guard, sleep, [&] { return finished_ || wakes_at_ < end; }) || boot_now() < end) continue;
    wakes_at_ = never;
    guard.unlock();
    instant const next = expire();
    guard.lock();
    due(guard, next);
  }
}

}  // namespace latchkey::detail
