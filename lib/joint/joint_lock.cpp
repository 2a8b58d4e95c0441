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
  for (auto const& key : members) {
    std::size_t group = 0;
    if (key->which && key->which->acquire_all()) {
      auto const like = std::find_if(members.begin(), members.end(), [&](auto const& other) {
        return other->which && other->engine == key->engine && other->which->acquire_all() == key->which->acquire_all();
      });
      group = 1 + static_cast<std::size_t>(like - members.begin());
    }
    made.push_back({key->name, group});
  }
  return made;
}

void fail(call& call, bool blocking, errc why, std::string_view text = {}) {
  call.error = why;
  call.text = text;
  if (!blocking) call.complete();
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

std::shared_ptr<joint_task> joint_lock::task_for(call& call, bool blocking) const {
  if (call.what == operation::type::release) {
    if (engine->over()) {  // members of other clients may be left
      drop(call.owner, call.hold);
      return fail(call, blocking, errc::closed), nullptr;
    }
  } else if (closing_ || engine->closing()) {
    return fail(call, blocking, errc::closed), nullptr;
  }
  std::vector<std::shared_ptr<member_hold>> parts;
  switch (call.what) {
    case operation::type::acquire:
      return keep(call, blocking, std::make_shared<joint_acquiring>(shared_from_this(), call, blocking));
    case operation::type::release: {
      auto const ended = remove(call.owner, call.hold);
      if (!ended) {
        fail(call, blocking, errc::not_owner, has_hold(call.owner) ? only_its_lease : std::string_view());
        return nullptr;
      }
      parts = ended->take();
      if (parts.empty()) return fail(call, blocking, errc::lease_lost), nullptr;
      return ask_all(call, blocking, ended, std::move(parts));
    }
    case operation::type::extend: {
      auto const extended = find(call.owner, call.hold);
      if (extended) parts = extended->parts();
      if (parts.empty()) return fail(call, blocking, errc::lease_lost), nullptr;
      return ask_all(call, blocking, extended, std::move(parts));
    }
    case operation::type::query: return ask_all(call, blocking, nullptr, {});
    case operation::type::command:  // of kinds that no joint lock is
    case operation::type::connect:
    case operation::type::adopt:
    case operation::type::force_unlock: break;
  }
  return fail(call, blocking, errc::bad_argument), nullptr;
}

// A release takes the parts of its hold before there is a task that asks for them.
std::shared_ptr<joint_task> joint_lock::ask_all(call& call, bool blocking, std::shared_ptr<joint_hold> about,
                                                std::vector<std::shared_ptr<member_hold>> parts) const {
  return keep(
      call, blocking,
      std::make_shared<joint_gathering>(shared_from_this(), call, blocking, std::move(about), std::move(parts)));
}

std::shared_ptr<joint_task> joint_lock::keep(call& call, bool blocking, std::shared_ptr<joint_task> made) const {
  {
    auto const lock = guard();
    // Who closes has told those that were there.
    if (call.what == operation::type::release || !closing_) return tasks_[&call] = std::move(made);
  }
  return fail(call, blocking, errc::closed), nullptr;
}

void joint_lock::start(call& call) const {
  if (auto const task = task_for(call, false)) task->begin();
}

void joint_lock::run(blocking_call& call, std::stop_token const& stop) const {
  uncancelled const whole;
  auto const task = task_for(call, true);
  if (!task) return;
  task->begin();
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) watch.emplace(stop, [&task] { task->cancel(asio::error::operation_aborted); });
  task->wait();
}

void joint_lock::forget(joint_guard const&, call const& call) const { tasks_.erase(&call); }

std::shared_ptr<joint_task> joint_lock::task_of(call const& call) const {
  auto const lock = guard();
  auto const found = tasks_.find(&call);
  return found == tasks_.end() ? nullptr : found->second;
}

void joint_lock::cancel(call& call) const {
  if (auto const task = task_of(call)) task->cancel(asio::error::operation_aborted);
}

instant joint_lock::expire(call& call) const {
  auto const task = task_of(call);
  return task ? task->expire() : never;
}

bool joint_lock::keeps_out(std::uint64_t owner) const {
  auto const held =
      std::count_if(members_.begin(), members_.end(), [&](member const& key) { return key->keeps_out(owner); });
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
         std::any_of(members_.begin(), members_.end(), [](auto const& key) { return key->forked(); });
}

bool joint_lock::inside() const {
  return engine->threads().inside() ||
         std::any_of(members_.begin(), members_.end(), [](auto const& key) { return key->inside(); });
}

instant joint_lock::budget_end(instant start) const {
  instant last{};
  for (auto const& key : members_) last = std::max(last, key->budget_end(start));
  return last;
}

milliseconds joint_lock::watchdog_time() const {
  milliseconds longest{0};
  for (auto const& key : members_) longest = std::max(longest, key->watchdog_time());
  return longest;
}

// --- holds ---

bool joint_lock::add(joint_guard const&, std::shared_ptr<joint_hold> made) const {
  if (closing_) return false;
  holds_[made->owner()].push_back(std::move(made));
  return true;
}

std::shared_ptr<joint_hold> joint_lock::find(std::uint64_t owner, hold_id wanted) const {
  auto const lock = guard();
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  for (auto const& hold : found->second)
    if (hold->id() == wanted) return hold;
  return nullptr;
}

// 0 is the owner's latest that no lease shows.
std::shared_ptr<joint_hold> joint_lock::remove(std::uint64_t owner, hold_id wanted) const {
  auto const lock = guard();
  auto const found = holds_.find(owner);
  if (found == holds_.end()) return nullptr;
  auto& all = found->second;
  auto const asked = [&](auto const& h) { return wanted == 0 ? !h->leased() : h->id() == wanted; };
  auto const known = std::find_if(all.rbegin(), all.rend(), asked);
  if (known == all.rend()) return nullptr;
  auto taken = std::move(*known);
  all.erase(std::prev(known.base()));
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
  for (auto const& part : ended->take()) part->drop();
}

void joint_lock::renew_no_longer(std::uint64_t owner, hold_id hold) const {
  if (auto const held = find(owner, hold)) held->renew_no_longer();
}

void joint_lock::on_lost(joint_hold& hold) const {
  if (hold.leased()) return;  // its lease takes it away
  std::pair<std::uint64_t, hold_id> oldest{};
  {
    auto const lock = guard();
    lost_.emplace_back(hold.owner(), hold.id());
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
    for (auto const& [call, task] : tasks_) tasks.push_back(task);
  }
  for (auto const& task : tasks) task->cancel(errc::closed);
  std::uint64_t const closer = owner_access::number(owner::this_thread());
  for (auto const& hold : all_holds()) {
    if (hold->leased())
      hold->lose(errc::closed);
    else if (hold->owner() == closer)
      drop(closer, hold->id());
  }
}

void joint_lock::thread_ended() noexcept {
  std::uint64_t const ended = owner_access::number(owner::this_thread());
  for (auto const& hold : all_holds()) {
    if (hold->owner() != ended || hold->leased() || hold->lost()) continue;
    hold->renew_no_longer();
    auto const left = std::max<nanoseconds>(hold->until() - boot_now(), nanoseconds(0));
    engine->report({.type = event_type::holder_thread_ended, .lock = name, .owner = ended, .took = left});
  }
}

// Members of this client are left to their leases; those of others would be renewed for ever.
void joint_lock::closed() noexcept {
  for (auto const& hold : all_holds()) hold->renew_no_longer();
}

}  // namespace latchkey::detail
