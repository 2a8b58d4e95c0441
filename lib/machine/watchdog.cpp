#include <machine/watchdog.hpp>

#include <machine/context.hpp>
#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>

#include <algorithm>

namespace latchkey::detail {

using namespace std::chrono_literals;

namespace {

// Renewals of one turn: no single turn, and no single answer of the server, is to be long.
constexpr std::size_t most_per_turn = 400;

}  // namespace

watchdog::watchdog(context& shared, outbox& requests)
    : shared_(shared),
      requests_(requests),
      period_(std::max<milliseconds>(shared.settings.lock_watchdog_timeout / 3, 1ms)) {
  timer_.what = timer_node::type::watchdog;
  timer_.of = this;
}

watchdog::~watchdog() { shared_.timers.drop(timer_); }

void watchdog::add(renewal& renewal) {
  if (renewal.is_linked() || renewal.under_way) return;
  renewal.failures = 0;
  renewal.due = after(shared_.now, period_);
  regular_.push_back(renewal);
  plan();
}

void watchdog::remove(renewal& renewal) {
  // In the outbox it is under way: its answer then finds nothing to count for.
  if (renewal.is_linked() && !renewal.under_way) regular_.erase(regular_.iterator_to(renewal));
}

void watchdog::again(renewal& renewal) {
  if (renewal.is_linked() || renewal.under_way || !wanted(renewal)) return;
  if (renewal.failures == 0) return add(renewal);
  milliseconds const most = std::min(period_, shared_.settings.retry_delay);
  instant due = after(shared_.now, shared_.pause(renewal.failures, most));
  if (!retries_.empty()) due = std::max(due, retries_.back().due);  // in order; all fail together anyway
  renewal.due = due;
  retries_.push_back(renewal);
  plan();
}

// The timer is never taken back: releasing a lock and taking it again sets none.
void watchdog::plan() {
  instant first = never;
  if (!regular_.empty()) first = regular_.front().due;
  if (!retries_.empty()) first = std::min(first, retries_.front().due);
  if (!urgent_.empty()) first = shared_.now;
  if (first != never) first = std::max(first, not_before_);
  if (first == never || (timer_.is_linked() && timer_.at <= first)) return;
  shared_.timers.set(timer_, first);
}

void watchdog::tick() {
  if (wants_all()) {  // the session asks for them
    shared_.out->turn = true;
    return;
  }
  // Whoever is due soon goes along: a tenth of the period early costs nothing and saves calls.
  instant const horizon = after(shared_.now, period_ / 10);
  std::size_t taken = 0;
  take(retries_, shared_.now, taken);
  take(regular_, horizon, taken);
  end_turn(taken);
}

void watchdog::want_all() {
  urgent_.splice(urgent_.end(), retries_);
  urgent_.splice(urgent_.end(), regular_);
}

void watchdog::want_all_now() {
  want_all();
  plan();
}

void watchdog::look_for(renewal& renewal) {
  renewal.looks = true;
  if (renewal.under_way) {
    renewal.stale = !renewal.is_linked();  // else it leaves for that server
    return;
  }
  if (renewal.is_linked()) regular_.erase(regular_.iterator_to(renewal));
  urgent_.push_back(renewal);
  plan();
}

void watchdog::catch_up() {
  std::size_t taken = 0;
  if (shared_.now >= not_before_) take(urgent_, never, taken);
  end_turn(taken);
}

void watchdog::take(list& from, instant until, std::size_t& taken) {
  while (!from.empty() && from.front().due <= until && taken < most_per_turn) {
    renewal& renewal = from.front();
    from.pop_front();
    leave_hanging(renewal);
    if (!wanted(renewal)) continue;
    renewal.under_way = true;
    renewal.newest = shared_.next_hold - 1;
    requests_.add(renewal);
    ++taken;
  }
}

void watchdog::end_turn(std::size_t taken) {
  if (taken == most_per_turn) not_before_ = after(shared_.now, 1ms);
  plan();
}

// Whose work shows no progress is not kept alive: the lease ends it.
void watchdog::leave_hanging(renewal& renewal) {
  for (auto& hold : renewal.of->holds) {
    if (hold->mode != renewal.mode || !hold->watchdog || hold->lost || !hold->link || !hold->link->hangs(shared_.now))
      continue;
    hold->watchdog = false;
    renewal.of->of.note(event_type::warning, renewal.of->owner, {}, "no progress: the lock is renewed no longer", {},
                        hold->context);
  }
}

bool watchdog::wanted(renewal const& renewal) {
  bool const looks = renewal.looks && renewal.of->live(renewal.mode) > 0;
  return looks || has_watchdog_hold(renewal);
}

bool watchdog::has_watchdog_hold(renewal const& renewal) {
  return std::any_of(renewal.of->holds.begin(), renewal.of->holds.end(),
                     [&](auto const& h) { return h->mode == renewal.mode && h->watchdog && !h->lost; });
}

}  // namespace latchkey::detail
