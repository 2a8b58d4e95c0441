#include <joint/joint_hold.hpp>

#include <engine/run_later.hpp>
#include <joint/joint_task.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <functional>

namespace latchkey::detail {

// --- of one member ---

member_hold::~member_hold() {
  if (key_->forked()) return;
  if (parts) parts->unlink();
  if (has_.load()) drop();
}

void member_hold::granted(hold_id which) noexcept {
  hold_ = which;
  has_.store(true);
}

void member_hold::attach(std::shared_ptr<joint_hold> const& to) {
  error_code why;
  {
    std::scoped_lock const lock(mutex_);
    part_of_ = to;
    if (!told_) return;
    why = why_;
  }
  to->on_lost(why);
}

instant member_hold::until() const {
  if (is_lost()) return {};
  instant const end = hold_link::until();
  return end == instant{} ? end : end - drift();
}

void member_hold::extending(nanoseconds drift) {
  std::scoped_lock const lock(mutex_);
  ++extensions_;
  drift_.store(std::max(drift_.load(), drift.count()));
}

void member_hold::extended(nanoseconds drift, bool done) {
  std::scoped_lock const lock(mutex_);
  if (--extensions_ == 0 && done) drift_.store(drift.count());
}

void member_hold::renew_no_longer() noexcept { key_->renew_no_longer(owner_, hold_); }

void member_hold::drop() noexcept {
  has_.store(false);
  key_->drop(owner_, hold_);
}

void member_hold::tell(error_code const& why) {
  std::shared_ptr<joint_hold> whole;
  {
    std::scoped_lock const lock(mutex_);
    told_ = true;
    why_ = why;
    whole = part_of_.lock();
  }
  if (whole) whole->on_lost(why);
}

// --- of all ---

bool joint_hold::begin(std::vector<part> parts, std::weak_ptr<joint_task> asking) {
  auto const mine = parts;
  {
    std::scoped_lock const lock(mutex_);
    ends_.reserve(parts.size());
    parts_ = std::move(parts);
    asking_ = std::move(asking);
    if (live() < terms_.quorum) return false;
    if (link_) link_->parts = shared_from_this();
  }
  for (auto const& one : mine) one->attach(shared_from_this());
  watch();
  return true;
}

bool joint_hold::add(part late) {
  {
    std::scoped_lock const lock(mutex_);
    if (ended_ || lost_) return false;
    ends_.reserve(parts_.size() + 1);
    parts_.push_back(late);
  }
  late->attach(shared_from_this());
  return true;
}

std::size_t joint_hold::live() const {
  return static_cast<std::size_t>(
      std::count_if(parts_.begin(), parts_.end(), [](part const& one) { return !one->is_lost(); }));
}

instant joint_hold::until() const {
  std::scoped_lock const lock(mutex_);
  return ended_ || lost_ ? instant{} : until_locked();
}

// As long as a quorum of its members lasts.
instant joint_hold::until_locked() const {
  // Each is asked once, since it may change meanwhile; and a lease asks from where nothing may be thrown.
  ends_.clear();
  for (auto const& one : parts_) ends_.push_back(one->until());
  if (ends_.size() < terms_.quorum) return {};
  auto const last = ends_.begin() + static_cast<std::ptrdiff_t>(terms_.quorum - 1);
  std::nth_element(ends_.begin(), last, ends_.end(), std::greater<>());
  return *last;
}

bool joint_hold::lost() const {
  std::scoped_lock const lock(mutex_);
  return lost_;
}

void joint_hold::unlink() {
  std::scoped_lock const lock(mutex_);
  link_ = nullptr;
}

std::vector<joint_hold::part> joint_hold::parts() const {
  std::scoped_lock const lock(mutex_);
  return parts_;
}

std::vector<joint_hold::part> joint_hold::take() {
  std::vector<part> taken;
  std::shared_ptr<joint_lock const> of;
  std::weak_ptr<joint_task> asking;
  bool awaited = false;
  {
    std::scoped_lock const lock(mutex_);
    awaited = lost_ && !parts_.empty();
    ended_ = true;
    link_ = nullptr;
    cancel_timer(timer_);
    taken.swap(parts_);
    of.swap(of_);
    asking.swap(asking_);
  }
  stop(asking);
  if (awaited) of->engine->await_lease(-1);
  return taken;
}

void joint_hold::stop(std::weak_ptr<joint_task> const& asking) {
  if (auto const task = asking.lock()) task->cancel(asio::error::operation_aborted);
}

void joint_hold::on_lost(error_code const& why) {
  {
    std::scoped_lock const lock(mutex_);
    if (ended_ || lost_ || live() >= terms_.quorum) return;
  }
  lose(why);
}

void joint_hold::lose(error_code const& why) {
  std::vector<part> rest;
  std::shared_ptr<loss_listener> holder;
  std::shared_ptr<joint_lock const> of;
  std::weak_ptr<joint_task> asking;
  bool awaited = false;
  {
    std::scoped_lock const lock(mutex_);
    if (ended_ || lost_) return;
    lost_ = true;
    cancel_timer(timer_);
    // Where only a client closes, what is left is released by whoever works under it.
    if (why != errc::closed)
      rest.swap(parts_);
    else
      awaited = !parts_.empty();
    asking.swap(asking_);
    of = of_;
    if (link_) {
      link_->lost.store(true, std::memory_order_release);
      holder = static_cast<loss_listener*>(link_)->self();
    }
  }
  stop(asking);
  if (awaited) of->engine->await_lease(1);
  // Where only a member's client closes nothing else would end the renewals of the other members.
  if (awaited && !of->engine->closing()) {
    std::scoped_lock const lock(mutex_);
    instant const end = after(boot_now(), of->engine->settings().close_timeout);
    if (!ended_)
      timer_ = run_later(*of->engine, end, [weak = weak_from_this()] {
        if (auto const self = weak.lock()) self->renew_no_longer();
      });
  }
  for (auto const& one : rest) one->drop();
  if (holder) of->engine->post([told = holder, why] { told->tell(why); });
  of->on_lost(*this);
}

void joint_hold::renew_no_longer() noexcept {
  for (auto const& one : parts()) one->renew_no_longer();
}

void joint_hold::watch() {
  std::scoped_lock const lock(mutex_);
  watch_locked();
}

// Renewals move the end on without a word: the timer looks again.
void joint_hold::watch_locked() {
  if (!terms_.has_drift || ended_ || lost_) return;
  cancel_timer(timer_);
  timer_ = run_later(*of_->engine, until_locked(), [weak = weak_from_this()] {
    auto const self = weak.lock();
    if (!self) return;
    if (self->until() <= boot_now()) return self->lose(errc::lease_lost);
    self->watch();
  });
}

}  // namespace latchkey::detail
