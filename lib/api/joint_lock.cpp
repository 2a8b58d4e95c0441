#include <api/joint_lock.hpp>

#include <api/calls.hpp>
#include <api/joint_acquiring.hpp>
#include <api/joint_gathering.hpp>
#include <engine/insist.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <numeric>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_lost = 1'024;  // holds that are kept for an unlock

// May both be taken by one script call?
bool bundled(lock_key const& one, lock_key const& other) {
  return one.which && other.which && one.engine == other.engine && one.which->acquire_all() &&
         one.which->acquire_all() == other.which->acquire_all();
}

// In the order of the list; what one script call can take goes together. The same name twice does not: the second is
// a re-entry behind the first.
std::vector<std::vector<std::size_t>> steps_of(std::vector<joint_lock::member> const& members) {
  std::vector<std::vector<std::size_t>> steps;
  std::vector<bool> placed(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (placed[i]) continue;
    auto& step = steps.emplace_back(std::vector{i});
    for (std::size_t j = i + 1; j < members.size() && step.size() < most_bundled; ++j) {
      bool const twice = std::any_of(step.begin(), step.end(),
                                     [&](std::size_t other) { return members[other]->name == members[j]->name; });
      if (placed[j] || twice || !bundled(*members[i], *members[j])) continue;
      step.push_back(j);
      placed[j] = true;
    }
  }
  return steps;
}

// By name: clients of other processes know nothing else of each other's members.
std::vector<std::size_t> ranks_of(std::vector<joint_lock::member> const& members) {
  std::vector<std::size_t> order(members.size()), rank(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return members[a]->name < members[b]->name; });
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

void fail(call& one, bool blocking, errc why) {
  one.error = why;
  if (!blocking) one.complete();
}

}  // namespace

joint_lock::joint_lock(std::shared_ptr<core> engine, std::vector<member> members, bool majority)
    : engine_(std::move(engine)),
      members_(std::move(members)),
      majority_(majority),
      quorum_(majority ? members_.size() / 2 + 1 : members_.size()) {
  rules_.members = members_.size();
  rules_.quorum = quorum_;
  rules_.at_once = majority;
  if (majority) return;
  rules_.steps = steps_of(members_);
  rules_.rank = ranks_of(members_);
}

joint_rules joint_lock::rules(milliseconds lease) const {
  joint_rules made = rules_;
  if (!majority_) return made;
  if (lease.count() <= 0)
    for (auto const& one : members_) lease = std::max(lease, watchdog_time(*one));
  // A dead member costs at most a tenth of the lease, and a living one has the time of a connection or two.
  made.member_time = std::max(milliseconds(50), lease / 10);
  return made;
}

std::shared_ptr<joint_task> joint_lock::task_for(call& one, bool blocking) {
  {
    std::scoped_lock const lock(mutex_);
    if (closed_) return fail(one, blocking, errc::closed), nullptr;
  }
  if (engine_->closing()) return fail(one, blocking, errc::closed), nullptr;
  std::vector<std::shared_ptr<member_hold>> parts;
  switch (one.what) {
    case operation::type::acquire:
      return keep(one, std::make_shared<joint_acquiring>(shared_from_this(), one, blocking));
    case operation::type::release: {
      auto const ended = remove(one.owner, one.hold);
      if (!ended) return fail(one, blocking, errc::not_owner), nullptr;
      parts = ended->take();
      if (ended->lost() || parts.empty()) return fail(one, blocking, errc::lease_lost), nullptr;
      return gathering(one, blocking, ended, std::move(parts));
    }
    case operation::type::extend: {
      auto const extended = find(one.owner, one.hold);
      if (extended) parts = extended->parts();
      if (parts.empty()) return fail(one, blocking, errc::lease_lost), nullptr;
      return gathering(one, blocking, extended, std::move(parts));
    }
    case operation::type::query: return gathering(one, blocking, nullptr, {});
    case operation::type::command:  // of kinds that no joint lock is
    case operation::type::force_unlock: break;
  }
  return fail(one, blocking, errc::bad_argument), nullptr;
}

// A release takes the parts of its hold before there is a task that asks for them.
std::shared_ptr<joint_task> joint_lock::gathering(call& one, bool blocking, std::shared_ptr<joint_hold> about,
                                                  std::vector<std::shared_ptr<member_hold>> parts) {
  try {
    auto made = std::make_shared<joint_gathering>(shared_from_this(), one, blocking, std::move(about), parts);
    return keep(one, std::move(made));
  } catch (std::bad_alloc const&) {
    if (one.what == operation::type::release)
      for (auto const& part : parts) part->drop();
    throw;
  }
}

std::shared_ptr<joint_task> joint_lock::keep(call& one, std::shared_ptr<joint_task> made) {
  std::scoped_lock const lock(mutex_);
  tasks_[&one] = made;
  return made;
}

void joint_lock::start(call& one) {
  if (auto const task = task_for(one, false)) task->begin();
}

void joint_lock::run(blocking_call& one, std::stop_token const& stop) {
  auto const task = task_for(one, true);
  if (!task) return;
  task->begin();
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) watch.emplace(stop, [&task] { task->cancel(asio::error::operation_aborted); });
  task->wait();
}

void joint_lock::forget(call const& one) {
  std::shared_ptr<joint_task> unused;
  std::scoped_lock const lock(mutex_);
  if (auto const found = tasks_.find(&one); found != tasks_.end()) {
    unused = std::move(found->second);
    tasks_.erase(found);
  }
}

std::shared_ptr<joint_task> joint_lock::task_of(call const& one) {
  std::scoped_lock const lock(mutex_);
  auto const found = tasks_.find(&one);
  return found == tasks_.end() ? nullptr : found->second;
}

void joint_lock::cancel(call& one) {
  if (auto const task = task_of(one)) task->cancel(asio::error::operation_aborted);
}

instant joint_lock::expire(call& one) {
  auto const task = task_of(one);
  return task ? task->expire() : never;
}

bool joint_lock::holds(std::uint64_t owner) const {
  auto const held =
      std::count_if(members_.begin(), members_.end(), [&](member const& one) { return detail::holds(*one, owner); });
  return static_cast<std::size_t>(held) > members_.size() - quorum_;
}

// --- holds ---

bool joint_lock::add(std::shared_ptr<joint_hold> made) {
  std::scoped_lock const lock(mutex_);
  if (closed_) return false;
  holds_[made->owner()].push_back(std::move(made));
  return true;
}

std::shared_ptr<joint_hold> joint_lock::find(std::uint64_t owner, hold_id which) {
  std::scoped_lock const lock(mutex_);
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  for (auto const& one : found->second)
    if (one->id() == which) return one;
  return nullptr;
}

// 0 is the owner's latest.
std::shared_ptr<joint_hold> joint_lock::remove(std::uint64_t owner, hold_id which) {
  std::scoped_lock const lock(mutex_);
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  auto& all = found->second;
  auto const one = which == 0 ? std::prev(all.end())
                              : std::find_if(all.begin(), all.end(), [&](auto const& h) { return h->id() == which; });
  if (one == all.end()) return nullptr;
  auto taken = std::move(*one);
  all.erase(one);
  if (all.empty()) holds_.erase(found);
  return taken;
}

void joint_lock::drop(std::uint64_t owner, hold_id which) {
  auto const ended = remove(owner, which);
  if (!ended) return;
  for (auto const& one : ended->take()) one->drop();
}

void joint_lock::on_lost(joint_hold& one) {
  if (one.shown()) return;  // its lease takes it away
  std::pair<std::uint64_t, hold_id> oldest{};
  {
    std::scoped_lock const lock(mutex_);
    insist([&] { lost_.emplace_back(one.owner(), one.id()); });
    if (lost_.size() <= most_lost) return;
    oldest = lost_.front();
    lost_.pop_front();
  }
  drop(oldest.first, oldest.second);
}

void joint_lock::closing() noexcept {
  std::vector<std::shared_ptr<joint_task>> tasks;
  std::vector<std::shared_ptr<joint_hold>> holds;
  {
    std::scoped_lock const lock(mutex_);
    closed_ = true;
    insist([&] {
      tasks.clear();
      holds.clear();
      for (auto const& [one, task] : tasks_) tasks.push_back(task);
      for (auto const& [owner, all] : holds_) holds.insert(holds.end(), all.begin(), all.end());
    });
    lost_.clear();
  }
  for (auto const& one : tasks) one->cancel(errc::closed);
  for (auto const& one : holds) {
    one->lose(errc::closed);
    one->take();
  }
  // Not before: a lease that ends meanwhile must find the hold that would tell it.
  decltype(holds_) unused;
  std::scoped_lock const lock(mutex_);
  unused.swap(holds_);
}

}  // namespace latchkey::detail
