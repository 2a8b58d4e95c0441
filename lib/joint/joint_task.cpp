#include <base/clock.hpp>
#include <engine/requests.hpp>
#include <joint/joint_task.hpp>

#include <algorithm>
#include <utility>

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
  auto const client_of = [](auto const& call) { return call->key().which ? call->key().engine.get() : nullptr; };
  for (auto next = all.begin(); next != all.end(); ++next) {
    core* const client = client_of(*next);
    auto const same = [&](auto const& other) { return client_of(other) == client; };
    if (!client) {
      (*next)->key().start(**next);
    } else if (std::none_of(all.begin(), next, same)) {
      std::vector<call*> these;
      for (auto const& call : all)
        if (same(call)) these.push_back(call.get());
      client->start(these);
    }
  }
}

}  // namespace

// A caller who waits for all of them alone, at one server, does his own I/O. Not where an end that is near would cost
// the connection, nor where some are not waited for.
bool joint_task::may_borrow(std::vector<std::shared_ptr<member_call>> const& all, instant end) const {
  if (!blocking_ || of_->rules().at_once || std::this_thread::get_id() != caller_) return false;
  if (all.empty() || !pending_.empty() || lent_.from || end < after(boot_now(), first_try_time / 2)) return false;
  // Questions leave one by one.
  if (all.size() > 1 && all.front()->what == operation::type::query) return false;
  auto const& first = all.front()->key();
  return std::all_of(all.begin(), all.end(),
                     [&](auto const& call) { return call->key().which && call->key().engine == first.engine; });
}

void joint_task::start(std::vector<std::shared_ptr<member_call>> const& all, joint_guard& guard) noexcept {
  instant first = never, limit = never;
  for (auto const& call : all) limit = std::min(limit, call->limit());
  bool const borrows = may_borrow(all, limit);
  pending_.reserve(pending_.size() + all.size());
  for (auto const& call : all) {
    call->under_way();
    pending_.push_back({call, call->deadline});
    first = std::min(first, call->deadline);
  }
  due(guard, first);
  guard.unlock();
  if (borrows) {
    core* const client = all.front()->key().engine.get();
    std::vector<call*> these;
    for (auto const& call : all) these.push_back(call.get());
    // Kept: what has ended before the lane is given back is asked whether it has.
    if (core::loan taken = client->start(these, true); taken.serial != 0)
      lent_ = {client, std::move(taken), limit, all};
  } else {
    start_all(all);
  }
  guard.lock();
}

// Whatever became of the task: a lane that was lent is given back.
void joint_task::drive(joint_guard& guard) noexcept {
  guard.unlock();
  {
    borrowing mine = std::exchange(lent_, {});
    mine.from->drive(std::move(mine.taken), mine.end, over_);
  }
  guard.lock();
}

void joint_task::on_answer(std::shared_ptr<member_call> const& call) noexcept {
  auto guard = of_->guard();
  std::erase_if(pending_, [&](pending const& entry) { return entry.call == call; });
  answered(*call, guard);
}

bool joint_task::awaits(lock_key const& member) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](pending const& entry) { return entry.call->key().same_as(member); });
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
  if (wake_at() <= now) time(guard, now);
  for (auto const& entry : pending_)
    if (entry.end <= now) late.push_back(entry.call);
  for (auto const& call : late) {
    guard.unlock();
    // One that is just being told so is not asked in a loop.
    instant const end = std::max(call->key().expire(*call), after(now, milliseconds(1)));
    guard.lock();
    for (auto& entry : pending_)
      if (entry.call == call) entry.end = end;
  }
  instant next = wake_at();
  for (auto const& entry : pending_) next = std::min(next, entry.end);
  return next;
}

void joint_task::wait() noexcept {
  auto guard = of_->guard();
  while (lent_.from || !finished_) {
    if (lent_.from) {
      drive(guard);
      continue;
    }
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

joint_gathering::joint_gathering(std::shared_ptr<joint_lock const> of, call& call, bool blocking,
                                 std::shared_ptr<joint_hold> about, std::vector<std::shared_ptr<member_hold>> parts)
    : joint_task(of, call, blocking),
      what_(call.what),
      question_(call.question),
      owner_(call.owner),
      lease_(call.lease),
      about_(std::move(about)),
      parts_(std::move(parts)),
      // Where all are needed all are tried before anything is said.
      answer_(call.what, about_ ? parts_.size() : of->members().size(), of->rules().quorum, of->rules().at_once) {}

void joint_gathering::begin() noexcept {
  std::vector<std::shared_ptr<member_call>> sent, refused;
  auto const ask = [&](joint_lock::member const& key, std::shared_ptr<member_hold> const& part) {
    auto made = question(key, part);
    (made->error ? refused : sent).push_back(std::move(made));
  };
  auto guard = of_->guard();
  if (!about_)
    for (auto const& key : of_->members()) ask(key, nullptr);
  for (auto const& part : parts_) ask(part->key(), part);
  start(sent, guard);
  for (auto const& call : refused) answered(*call, guard);
}

std::shared_ptr<member_call> joint_gathering::question(joint_lock::member const& key,
                                                       std::shared_ptr<member_hold> const& part) {
  auto made = std::make_shared<member_call>(shared_from_this(), key, 0);
  owner const who = owner_access::from(owner_);
  refusal wrong;
  switch (what_) {
    case operation::type::release: wrong = fill_release(*made, *key, who, part->hold()); break;
    case operation::type::extend: {
      wrong = fill_extend(*made, *key, who, part->hold(), lease_);
      part->trust.extending(of_->drift(lease_));
      break;
    }
    default: wrong = fill_query(*made, *key, question_, who);
  }
  made->hold_shown = part;
  made->error = wrong.code;
  made->text = wrong.text;
  return made;
}

void joint_gathering::answered(member_call& call, joint_guard& guard) {
  if (what_ == operation::type::release) {
    call.hold_shown->left();
    call.hold_shown->last = !call.error && call.released == release_result::released;
    if (call.released == release_result::still_held && others_leave(call.key()))
      call.released = release_result::released;
  }
  if (what_ == operation::type::extend) call.hold_shown->trust.extended(of_->drift(lease_), call.yes);
  if (!answer_.add(call)) return;
  if (what_ == operation::type::extend) about_->watch(guard);
  finish(guard, [this](detail::call& told) { answer_.fill(told); });
}

// A member that stands there twice answers in any order.
bool joint_gathering::others_leave(lock_key const& member) const {
  return awaits(member) || std::any_of(parts_.begin(), parts_.end(), [&](std::shared_ptr<member_hold> const& part) {
           return part->last && part->key()->same_as(member);
         });
}

}  // namespace latchkey::detail
