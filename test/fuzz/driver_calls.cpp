#include <fuzz/driver.hpp>

namespace latchkey::fuzz {

using detail::milliseconds;
using detail::operation;

namespace {

constexpr milliseconds waits[] = {milliseconds(0), milliseconds(-1), milliseconds(1), milliseconds(5'000),
                                  milliseconds(60'000)};
constexpr milliseconds leases[] = {milliseconds(0), milliseconds(1), milliseconds(2'000), milliseconds(30'000),
                                   milliseconds(1'000'000'000)};

}  // namespace

call& driver::made(operation::type what) {
  auto& one = *calls_.emplace_back(std::make_unique<call>());
  one.what = what;
  one.which = kinds_[in_.pick(2)].which;
  one.key = in_.flip() ? "k" : "{other}";
  one.name = one.key;
  one.owner = 1 + in_.pick(3);
  one.started = now_;
  one.deadline = detail::after(now_, milliseconds(20'000));
  return one;
}

// Of the one who has this hold.
call& driver::about(operation::type what, call const& held) {
  auto& one = made(what);
  one.which = held.which;
  one.mode = held.mode;
  one.name = one.key = held.key;
  one.owner = held.owner;
  return one;
}

void driver::start(call& one, bool may_borrow) {
  one.self_timed = may_borrow;
  if (machine_.start(one, may_borrow, now_, out_)) {
    must(lent_ == 0, "the lane is lent to one caller at a time");
    lent_ = machine_.lane_serial();
    auto const found = peers_.find(lent_);
    must(found != peers_.end() && found->second.lendable, "only a lane that is open is lent");
    found->second.hear(machine_.lane_bytes());
  }
  perform();
}

void driver::acquire() {
  auto& one = made(operation::type::acquire);
  auto const& rules = one.which->rules();
  one.mode = static_cast<unsigned char>(in_.pick(rules.modes));
  // Half of the owners hold without leases.
  if (!rules.renews || one.owner % 2 != 0) one.link = &one.shown;
  if (auto const wait = in_.any(waits); wait < wait.zero())
    one.deadline = detail::never;
  else if (wait > wait.zero())
    one.deadline = detail::after(now_, wait);
  else
    one.once = true;
  one.lease = in_.any(leases);
  one.line_time = milliseconds(300'000);
  // Permits and doors have an owner for every call, as the client gives them.
  if (!rules.renews) one.owner = 100 + calls_.size();
  auto const more = in_.pick(8);
  bool const is_permit = one.which == &detail::permit_semaphore_kind();
  one.keeps = rules.renews || (is_permit && (more & 1) != 0);
  if ((more & 2) != 0 && rules.renews && one.lease == one.lease.zero()) one.max_hold = milliseconds(40'000);
  if ((more & 4) != 0 && one.once && one.which->acquire_all()) one.bundle = 1 + in_.pick(2);
  start(one, one.bundle == 0 && in_.flip());
}

call* driver::any_call() {
  return calls_.empty() ? nullptr : calls_[calls_.size() - 1 - in_.byte() % calls_.size()].get();
}

// A call that was granted a hold and has not given it up.
call* driver::any_hold() {
  std::size_t const first = calls_.empty() ? 0 : in_.byte() % calls_.size();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    call& one = *calls_[(first + i) % calls_.size()];
    if (one.what == operation::type::acquire && one.completions > 0 && one.yes && one.keeps && !one.ended) return &one;
  }
  return nullptr;
}

// Of the owner's latest hold that no lease has, or of one that a lease has.
void driver::release(bool latest) {
  call* const held = any_hold();
  if (!held) return;
  auto& one = about(operation::type::release, *held);
  if (!latest) {
    one.hold = held->hold;
    held->ended = true;
    machine_.unlink(*held->which, held->key, held->owner, held->hold);
  }
  start(one, in_.flip());
}

void driver::extend() {
  call* const held = any_hold();
  if (!held || !has({held->which, 0}, detail::ask::extend)) return;
  auto& one = about(operation::type::extend, *held);
  one.hold = held->hold;
  one.lease = in_.any(leases);
  if (one.lease == one.lease.zero()) one.lease = milliseconds(10);
  start(one, in_.flip());
}

void driver::drop() {
  call* const held = any_hold();
  if (!held) return;
  held->ended = true;
  machine_.unlink(*held->which, held->key, held->owner, held->hold);
  machine_.drop(*held->which, held->key, held->owner, held->hold, now_, out_);
  perform();
}

void driver::plain() {
  auto& one = made(operation::type::query);
  auto const& rules = one.which->rules();
  constexpr detail::query questions[] = {detail::query::is_locked,  detail::query::is_held_by,
                                         detail::query::hold_count, detail::query::time_to_live,
                                         detail::query::value,      detail::query::token};
  one.question = in_.any(questions);
  if (one.question == detail::query::token && !rules.tokens) one.question = detail::query::value;
  if (in_.flip() && has({one.which, 0}, detail::ask::force_unlock)) one.what = operation::type::force_unlock;
  start(one, in_.flip());
}

void driver::command_of_kind() {
  auto const& of = kinds_[in_.pick(2)];
  if (of.commands == 0) return;
  auto& one = made(operation::type::command);
  one.which = of.which;
  one.command = static_cast<unsigned char>(in_.pick(of.commands));
  one.owner = 100 + calls_.size();
  one.amount = static_cast<std::int64_t>(in_.pick(4));
  one.argument = std::make_shared<std::string const>(in_.text(4));
  start(one, in_.flip());
}

void driver::cancel() {
  call* const one = any_call();
  if (!one || one->completions > 0) return;
  machine_.cancel(*one, now_, out_);
  perform();
}

void driver::expire() {
  call* const one = any_call();
  if (!one || one->completions > 0 || !one->self_timed || one->deadline > now_) return;
  machine_.expire(*one, now_, out_);
  perform();
}

}  // namespace latchkey::fuzz
