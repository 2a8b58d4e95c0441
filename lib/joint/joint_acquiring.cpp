#include <joint/joint_acquiring.hpp>

#include <base/clock.hpp>
#include <engine/requests.hpp>
#include <engine/run_later.hpp>

#include <algorithm>
#include <atomic>
#include <random>

namespace latchkey::detail {

namespace {

using action_type = joint_acquire::action::type;
using answer_type = joint_acquire::answer::type;

std::uint64_t new_bundle() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::uint64_t new_hold() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Pauses of different processes must differ.
std::uint64_t new_seed() {
  static std::atomic<std::uint64_t> next{[] {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  }()};
  return next.fetch_add(0xD1B54A32D192ED03u);
}

joint_acquire::answer answer_of(member_call const& one) {
  if (one.error) return {.what = answer_type::failed, .error = one.error, .text = one.text};
  if (one.yes) return {.what = answer_type::granted, .until = one.hold_shown->until()};
  return {.what = one.untried ? answer_type::untried : answer_type::busy};
}

}  // namespace

joint_acquiring::joint_acquiring(std::shared_ptr<joint_lock const> of, call& one, bool blocking)
    : joint_task(of, one, blocking),
      owner_(one.owner),
      lease_(one.lease),
      max_hold_(one.max_hold),
      started_(one.started),
      link_(one.link),
      machine_(of->rules(one.lease, one.max_hold), {.deadline = one.deadline, .once = one.once, .seed = new_seed()}) {}

// Whoever finds nobody performing performs what is decided, in order; the others leave it to him.
template <class Step>
void joint_acquiring::step(Step&& next) noexcept {
  std::unique_lock lock(deciding_);
  next();
  if (performing_) return;
  performing_ = true;
  while (auto const what = machine_.take()) {
    lock.unlock();
    perform(*what);
    lock.lock();
  }
  performing_ = false;
}

void joint_acquiring::begin() noexcept {
  step([&] { machine_.begin(boot_now()); });
}

void joint_acquiring::cancel(error_code const& why) {
  step([&] { machine_.cancel(why, boot_now()); });
}

void joint_acquiring::time() {
  step([&] {
    // By two clocks: that of the timer is as good as the boot clock.
    if (sleeps_until_ != never) machine_.time(std::max(boot_now(), std::exchange(sleeps_until_, never)));
  });
}

instant joint_acquiring::wake_at() {
  std::scoped_lock const lock(deciding_);
  return sleeps_until_;
}

void joint_acquiring::answered(member_call& one) {
  step([&] {
    if (!one.yes) asked_.erase(one.number());
    machine_.answered(one.number(), answer_of(one), boot_now());
  });
}

std::shared_ptr<member_call> joint_acquiring::take(joint_acquire::attempt id) {
  std::scoped_lock const lock(deciding_);
  auto const found = asked_.find(id);
  if (found == asked_.end()) return nullptr;
  auto one = std::move(found->second);
  asked_.erase(found);
  return one;
}

void joint_acquiring::perform(joint_acquire::action const& what) {
  switch (what.what) {
    case action_type::ask:
    case action_type::wait: return ask(what);
    case action_type::cancel: {
      std::shared_ptr<member_call> one;
      {
        std::scoped_lock const lock(deciding_);
        if (auto const found = asked_.find(what.of[0].id); found != asked_.end()) one = found->second;
      }
      if (one) one->key().cancel(*one);
      return;
    }
    case action_type::give_back:
      if (auto const one = take(what.of[0].id)) one->hold_shown->drop();
      return;
    case action_type::keep:
      if (auto const one = take(what.of[0].id); one && !made_->add(one->hold_shown)) one->hold_shown->drop();
      return;
    case action_type::sleep: return sleep(what.when);
    case action_type::finish: return conclude();
  }
}

void joint_acquiring::sleep(instant until) {
  {
    std::scoped_lock const lock(deciding_);
    sleeps_until_ = until;
    cancel_timer(timer_);
    timer_ = run_later(*of_->engine, until, [self = shared_from_this(), this] { time(); });
  }
  due(until);
}

void joint_acquiring::ask(joint_acquire::action const& what) {
  std::vector<std::shared_ptr<member_call>> all;
  bool const waits = what.what == action_type::wait;
  bool const bundled = what.of.size() > 1 && !of_->majority();
  std::uint64_t const bundle = bundled ? new_bundle() : 0;
  for (auto const& [member, id] : what.of) {
    auto const& key = of_->members()[member];
    auto made = std::make_shared<member_call>(shared_from_this(), key, id);
    acquire_request asked{owner_access::from(owner_), std::nullopt, std::nullopt, std::nullopt};
    if (!waits) asked.wait = milliseconds::zero();
    if (lease_.count() > 0) asked.lease = lease_;
    if (max_hold_.count() > 0) asked.max_hold = max_hold_;
    if (auto const wrong = fill_acquire(*made, *key, asked)) {
      // Of the arguments the caller was told; this is a fork, or a member that asks for more than we do.
      step([&, call = id] {  // Clang 14 does not capture a binding by itself
        machine_.answered(call, {.what = answer_type::failed, .error = wrong.code, .text = wrong.text}, boot_now());
      });
      continue;
    }
    made->deadline = waits ? what.when : std::min(made->deadline, what.when);
    made->started = started_;
    made->bundle = bundle;
    milliseconds lease = lease_.count() > 0 ? lease_ : key->watchdog_time();
    if (max_hold_.count() > 0) lease = std::min(lease, max_hold_);
    made->hold_shown = std::make_shared<member_hold>(key, owner_, of_->drift(lease));
    made->link = made->hold_shown.get();
    {
      std::scoped_lock const lock(deciding_);
      asked_[id] = made;
    }
    all.push_back(std::move(made));
  }
  start(all);
}

void joint_acquiring::conclude() {
  std::vector<part> parts;
  error_code error;
  std::string text;
  bool granted = false;
  {
    std::scoped_lock const lock(deciding_);
    cancel_timer(timer_);
    sleeps_until_ = never;
    granted = machine_.granted();
    error = machine_.error();
    text = machine_.text();
    parts.reserve(machine_.held().size());
    for (auto const& [member, id] : machine_.held()) {
      parts.push_back(std::move(asked_[id]->hold_shown));
      asked_.erase(id);
    }
  }
  if (granted) granted = begin_hold(parts, error);
  finish([&](call& told) {
    told.yes = granted;
    told.hold = granted ? made_->id() : 0;
    told.error = error;
    told.text = std::move(text);
  });
}

// False: it was lost meanwhile, or the client closes.
bool joint_acquiring::begin_hold(std::vector<part> const& parts, error_code& error) {
  made_ =
      std::make_shared<joint_hold>(of_, joint_hold::terms{owner_, new_hold(), of_->quorum(), of_->majority(), link_});
  bool const begun = made_->begin(parts, weak_from_this());
  if (begun && of_->add(made_)) return true;
  // What is given back now may be there for a while: no error that says that nothing is.
  error = begun ? errc::closed : errc::timeout;
  made_->take();
  for (auto const& one : parts) one->drop();
  return false;
}

}  // namespace latchkey::detail
