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

std::atomic<std::uint64_t> last_bundle{0}, last_hold{0};

// Pauses of different processes must differ.
std::uint64_t new_seed() {
  static std::atomic<std::uint64_t> next{[] {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  }()};
  return next.fetch_add(0xD1B54A32D192ED03u);
}

joint_acquire::answer answer_of(member_call const& call) {
  if (call.error) return {.what = answer_type::failed, .error = call.error, .text = call.text};
  if (call.yes) return {.what = answer_type::granted, .until = call.hold_shown->until()};
  return {.what = call.untried ? answer_type::untried : answer_type::busy};
}

// Without the guard, and the end of what it has taken along as well.
template <class F>
void outside(joint_guard& guard, F&& f) {
  guard.unlock();
  { std::remove_reference_t<F>(std::forward<F>(f))(); }
  guard.lock();
}

}  // namespace

joint_acquiring::joint_acquiring(std::shared_ptr<joint_lock const> of, call& call, bool blocking)
    : joint_task(of, call, blocking),
      owner_(call.owner),
      lease_(call.lease),
      max_hold_(call.max_hold),
      started_(call.started),
      link_(call.link),
      context_(context_of(call.link)),
      progress_within_(call.link ? call.link->more().progress_within : nanoseconds(0)),
      machine_(of->rules_for(call.lease, call.max_hold),
               {.deadline = call.deadline, .once = call.once, .seed = new_seed()}) {}

// Whoever finds nobody performing performs what is decided, in order; the others leave it to him.
void joint_acquiring::perform(joint_guard& guard) noexcept {
  if (std::exchange(performing_, true)) return;
  while (auto const what = machine_.take()) perform(*what, guard);
  performing_ = false;
}

void joint_acquiring::begin() noexcept {
  auto guard = of_->guard();
  machine_.begin(boot_now());
  perform(guard);
}

void joint_acquiring::cancel(error_code const& why) {
  auto guard = of_->guard();
  machine_.cancel(why, boot_now());
  perform(guard);
}

// A timer may come when a blocking caller has come before it, and has gone to sleep again.
void joint_acquiring::time(joint_guard& guard, instant now) {
  if (now < sleeps_until_) return;
  sleeps_until_ = never;
  machine_.time(now);
  perform(guard);
}

void joint_acquiring::answered(member_call& call, joint_guard& guard) {
  if (!call.yes) asked_.erase(call.number());
  machine_.answered(call.number(), answer_of(call), boot_now());
  perform(guard);
}

std::shared_ptr<member_call> joint_acquiring::take(joint_acquire::attempt id) {
  auto const found = asked_.find(id);
  if (found == asked_.end()) return nullptr;
  auto call = std::move(found->second);
  asked_.erase(found);
  return call;
}

void joint_acquiring::perform(joint_acquire::action const& what, joint_guard& guard) {
  switch (what.what) {
    case action_type::ask:
    case action_type::wait: return ask(what, guard);
    case action_type::cancel:
      if (auto const found = asked_.find(what.of[0].id); found != asked_.end())
        outside(guard, [call = found->second] { call->key().cancel(*call); });
      return;
    case action_type::give_back:
      if (auto call = take(what.of[0].id)) outside(guard, [given = std::move(call)] { given->hold_shown->drop(); });
      return;
    case action_type::keep:
      if (auto call = take(what.of[0].id); call && !(made_ && made_->add(guard, call->hold_shown)))
        outside(guard, [given = std::move(call)] { given->hold_shown->drop(); });
      return;
    case action_type::sleep: return sleep(what.when, guard);
    case action_type::finish: return conclude(guard);
  }
}

void joint_acquiring::sleep(instant until, joint_guard& guard) {
  sleeps_until_ = until;
  cancel_timer(timer_);
  timer_ = run_later(*of_->engine, until, [self = shared_from_this(), this, until] {
    auto again = of_->guard();
    time(again, std::max(boot_now(), until));  // by two clocks: that of the timer is as good as the boot clock
  });
  due(guard, until);
}

void joint_acquiring::ask(joint_acquire::action const& what, joint_guard& guard) {
  std::vector<std::shared_ptr<member_call>> all;
  std::uint64_t const bundle = what.of.size() > 1 && !of_->rules().at_once ? ++last_bundle : 0;
  for (auto const& [member, id] : what.of) {
    auto made = call_to(member, id, what);
    if (made->error) {
      // Of the arguments the caller was told; this is a fork, or a member that asks for more than we do.
      machine_.answered(id, answer_of(*made), boot_now());
      continue;
    }
    made->bundle = bundle;
    made->member = true;
    made->comes_back = what.comes_back;
    asked_[id] = made;
    all.push_back(std::move(made));
  }
  start(all, guard);
}

std::shared_ptr<member_call> joint_acquiring::call_to(std::size_t member, joint_acquire::attempt id,
                                                      joint_acquire::action const& what) {
  auto const& key = of_->members()[member];
  auto made = std::make_shared<member_call>(shared_from_this(), key, id);
  acquire_request asked{owner_access::from(owner_), std::nullopt, std::nullopt, std::nullopt};
  bool const waits = what.what == action_type::wait;
  if (!waits) asked.wait = milliseconds::zero();
  if (lease_.count() > 0) asked.lease = lease_;
  if (max_hold_.count() > 0) asked.max_hold = max_hold_;
  if (auto const wrong = fill_acquire(*made, *key, asked)) {
    made->error = wrong.code;
    made->text = wrong.text;
    return made;
  }
  made->deadline = waits ? what.when : std::min(made->deadline, what.when);
  made->started = started_;
  milliseconds lease = lease_.count() > 0 ? lease_ : key->watchdog_time();
  if (max_hold_.count() > 0) lease = std::min(lease, max_hold_);
  made->hold_shown = std::make_shared<member_hold>(of_, key, owner_, of_->drift(lease));
  if (context_ != 0) made->hold_shown->set_more().context = context_;
  if (progress_within_.count() != 0) made->hold_shown->set_more().progress_within = progress_within_;
  made->link = made->hold_shown.get();
  return made;
}

void joint_acquiring::conclude(joint_guard& guard) {
  cancel_timer(timer_);
  sleeps_until_ = never;
  bool granted = machine_.granted();
  error_code error = machine_.error();
  std::string text = machine_.text();
  if (granted) {
    std::vector<std::shared_ptr<member_hold>> parts;
    for (auto const& question : machine_.held()) parts.push_back(asked_.at(question.id)->hold_shown);
    made_ = std::make_shared<joint_hold>(of_, joint_hold::terms{owner_, ++last_hold, link_});
    if (!made_->begin(guard, parts, weak_from_this())) {
      made_.reset();
      return machine_.lost(boot_now());
    }
    for (auto const& question : machine_.held()) take(question.id);
    granted = of_->add(guard, made_);
    if (!granted) {  // the client closes
      error = errc::closed;
      outside(guard, [this, back = std::move(parts)] {
        made_->take();
        for (auto const& part : back) part->drop();
      });
    }
  }
  finish(guard, [&](call& told) {
    told.yes = granted;
    told.hold = granted ? made_->id() : 0;
    told.error = error;
    told.text = std::move(text);
  });
}

}  // namespace latchkey::detail
