#include <joint/joint_lock.hpp>

#include <joint/joint_acquiring.hpp>
#include <joint/joint_task.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_lost = 1'024;  // holds that are kept for an unlock

// What one script call may take is of one group.
std::vector<joint_rules::member> grouped(std::vector<joint_lock::member> const& members) {
  std::vector<joint_rules::member> made;
  for (auto const& one : members) {
    std::size_t group = 0;
    if (one->which && one->which->acquire_all()) {
      auto const like = std::find_if(members.begin(), members.end(), [&](auto const& other) {
        return other->which && other->engine == one->engine && other->which->acquire_all() == one->which->acquire_all();
      });
      group = 1 + static_cast<std::size_t>(like - members.begin());
    }
    made.push_back({one->name, group});
  }
  return made;
}

void fail(call& one, bool blocking, errc why, std::string_view text = {}) {
  one.error = why;
  one.text = text;
  if (!blocking) one.complete();
}

}  // namespace

joint_lock::joint_lock(std::shared_ptr<core> client, std::string called, std::vector<member> members, bool majority)
    : lock_key(std::move(client), std::move(called), nullptr, 0),
      members_(std::move(members)),
      rules_(majority ? joint_rules::majority_of(members_.size()) : joint_rules::all_of(grouped(members_))) {}

joint_rules joint_lock::rules_for(milliseconds lease, milliseconds max_hold) const {
  if (lease.count() <= 0) lease = watchdog_time();
  if (max_hold.count() > 0) lease = std::min(lease, max_hold);
  return rules_.with_lease(lease);
}

std::shared_ptr<joint_task> joint_lock::task_for(call& one, bool blocking) const {
  if (one.what == operation::type::release) {
    if (engine->over()) {  // members of other clients may be left
      drop(one.owner, one.hold);
      return fail(one, blocking, errc::closed), nullptr;
    }
  } else if (closing_ || engine->closing()) {
    return fail(one, blocking, errc::closed), nullptr;
  }
  std::vector<std::shared_ptr<member_hold>> parts;
  switch (one.what) {
    case operation::type::acquire:
      return keep(one, blocking, std::make_shared<joint_acquiring>(shared_from_this(), one, blocking));
    case operation::type::release: {
      auto const ended = remove(one.owner, one.hold);
      if (!ended) {
        fail(one, blocking, errc::not_owner, has_hold(one.owner) ? only_its_lease : std::string_view());
        return nullptr;
      }
      parts = ended->take();
      if (parts.empty()) return fail(one, blocking, errc::lease_lost), nullptr;
      return ask_all(one, blocking, ended, std::move(parts));
    }
    case operation::type::extend: {
      auto const extended = find(one.owner, one.hold);
      if (extended) parts = extended->parts();
      if (parts.empty()) return fail(one, blocking, errc::lease_lost), nullptr;
      return ask_all(one, blocking, extended, std::move(parts));
    }
    case operation::type::query: return ask_all(one, blocking, nullptr, {});
    case operation::type::command:  // of kinds that no joint lock is
    case operation::type::connect:
    case operation::type::adopt:
    case operation::type::force_unlock: break;
  }
  return fail(one, blocking, errc::bad_argument), nullptr;
}

// A release takes the parts of its hold before there is a task that asks for them.
std::shared_ptr<joint_task> joint_lock::ask_all(call& one, bool blocking, std::shared_ptr<joint_hold> about,
                                                std::vector<std::shared_ptr<member_hold>> parts) const {
  return keep(one, blocking,
              std::make_shared<joint_gathering>(shared_from_this(), one, blocking, std::move(about), std::move(parts)));
}

std::shared_ptr<joint_task> joint_lock::keep(call& one, bool blocking, std::shared_ptr<joint_task> made) const {
  {
    auto const lock = guard();
    // Who closes has told those that were there.
    if (one.what == operation::type::release || !closing_) return tasks_[&one] = std::move(made);
  }
  return fail(one, blocking, errc::closed), nullptr;
}

void joint_lock::start(call& one) const {
  if (auto const task = task_for(one, false)) task->begin();
}

void joint_lock::run(blocking_call& one, std::stop_token const& stop) const {
  uncancelled const whole;
  auto const task = task_for(one, true);
  if (!task) return;
  task->begin();
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) watch.emplace(stop, [&task] { task->cancel(asio::error::operation_aborted); });
  task->wait();
}

void joint_lock::forget(joint_guard const&, call const& one) const { tasks_.erase(&one); }

std::shared_ptr<joint_task> joint_lock::task_of(call const& one) const {
  auto const lock = guard();
  auto const found = tasks_.find(&one);
  return found == tasks_.end() ? nullptr : found->second;
}

void joint_lock::cancel(call& one) const {
  if (auto const task = task_of(one)) task->cancel(asio::error::operation_aborted);
}

instant joint_lock::expire(call& one) const {
  auto const task = task_of(one);
  return task ? task->expire() : never;
}

bool joint_lock::keeps_out(std::uint64_t owner) const {
  auto const held =
      std::count_if(members_.begin(), members_.end(), [&](member const& one) { return one->keeps_out(owner); });
  return static_cast<std::size_t>(held) > members_.size() - rules_.quorum;
}

std::string_view joint_lock::refuses(operation::type what, query question) const {
  if (what == operation::type::force_unlock) return "a lock of several members cannot be unlocked by force";
  if (what != operation::type::query) return "";
  if (has_text(question)) return "a lock of several members is seen by its members";
  if (question == query::token) return "only a fenced lock has fencing tokens";
  return question == query::time_to_live ? "a lock of several members has no time to live of its own" : "";
}

bool joint_lock::forked() const {
  return engine->forked() ||
         std::any_of(members_.begin(), members_.end(), [](auto const& one) { return one->forked(); });
}

bool joint_lock::inside() const {
  return engine->threads().inside() ||
         std::any_of(members_.begin(), members_.end(), [](auto const& one) { return one->inside(); });
}

instant joint_lock::budget_end(instant start) const {
  instant last{};
  for (auto const& one : members_) last = std::max(last, one->budget_end(start));
  return last;
}

milliseconds joint_lock::watchdog_time() const {
  milliseconds longest{0};
  for (auto const& one : members_) longest = std::max(longest, one->watchdog_time());
  return longest;
}

// --- holds ---

bool joint_lock::add(joint_guard const&, std::shared_ptr<joint_hold> made) const {
  if (closing_) return false;
  holds_[made->owner()].push_back(std::move(made));
  return true;
}

std::shared_ptr<joint_hold> joint_lock::find(std::uint64_t owner, hold_id which) const {
  auto const lock = guard();
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  for (auto const& one : found->second)
    if (one->id() == which) return one;
  return nullptr;
}

// 0 is the owner's latest that no lease shows.
std::shared_ptr<joint_hold> joint_lock::remove(std::uint64_t owner, hold_id which) const {
  auto const lock = guard();
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  auto& all = found->second;
  auto const asked = [&](auto const& h) { return which == 0 ? !h->leased() : h->id() == which; };
  auto const one = std::find_if(all.rbegin(), all.rend(), asked);
  if (one == all.rend()) return nullptr;
  auto taken = std::move(*one);
  all.erase(std::prev(one.base()));
  if (all.empty()) holds_.erase(found);
  return taken;
}

bool joint_lock::has_hold(std::uint64_t owner) const {
  auto const lock = guard();
  return holds_.contains(owner);
}

void joint_lock::drop(std::uint64_t owner, hold_id hold) const {
  auto const ended = remove(owner, hold);
  if (!ended) return;
  for (auto const& one : ended->take()) one->drop();
}

void joint_lock::renew_no_longer(std::uint64_t owner, hold_id hold) const {
  if (auto const one = find(owner, hold)) one->renew_no_longer();
}

void joint_lock::on_lost(joint_hold& one) const {
  if (one.leased()) return;  // its lease takes it away
  std::pair<std::uint64_t, hold_id> oldest{};
  {
    auto const lock = guard();
    lost_.emplace_back(one.owner(), one.id());
    if (lost_.size() <= most_lost) return;
    oldest = lost_.front();
    lost_.pop_front();
  }
  drop(oldest.first, oldest.second);
}

std::vector<std::shared_ptr<joint_hold>> joint_lock::all_holds() const noexcept {
  std::vector<std::shared_ptr<joint_hold>> all;
  auto const lock = guard();
  for (auto const& [owner, these] : holds_) all.insert(all.end(), these.begin(), these.end());
  return all;
}

void joint_lock::closing() noexcept {
  std::vector<std::shared_ptr<joint_task>> tasks;
  {
    auto const lock = guard();
    closing_ = true;
    for (auto const& [one, task] : tasks_) tasks.push_back(task);
  }
  for (auto const& one : tasks) one->cancel(errc::closed);
  std::uint64_t const closer = owner_access::number(owner::this_thread());
  for (auto const& one : all_holds()) {
    if (one->leased())
      one->lose(errc::closed);
    else if (one->owner() == closer)
      drop(closer, one->id());
  }
}

void joint_lock::thread_ended() noexcept {
  std::uint64_t const ended = owner_access::number(owner::this_thread());
  for (auto const& one : all_holds()) {
    if (one->owner() != ended || one->leased() || one->lost()) continue;
    one->renew_no_longer();
    note said;
    said.type = event_type::holder_thread_ended;
    said.owner = ended;
    said.lock = name;
    said.took = std::max<nanoseconds>(one->until() - boot_now(), nanoseconds(0));
    engine->report(said);
  }
}

// Members of this client are left to their leases; those of others would be renewed for ever.
void joint_lock::closed() noexcept {
  for (auto const& one : all_holds()) one->renew_no_longer();
}

}  // namespace latchkey::detail
