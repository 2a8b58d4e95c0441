#include <engine/run_later.hpp>
#include <joint/joint_hold.hpp>
#include <joint/joint_task.hpp>

#include <boost/asio/error.hpp>

namespace latchkey::detail {

// --- of one member ---

member_hold::~member_hold() {
  if (key_->forked()) return;
  if (more().parts) more().parts->unlink();
  if (has_.load()) drop();
}

void member_hold::granted(hold_id which) noexcept {
  hold_ = which;
  has_.store(true);
}

void member_hold::drop() noexcept {
  has_.store(false);
  key_->drop(owner_, hold_);
}

void member_hold::tell(error_code const& why) {
  std::shared_ptr<joint_hold> whole;
  {
    auto const guard = of_->guard();
    whole = part_of.lock();
  }
  if (whole) whole->on_lost(why);
}

// --- of all ---

namespace {

void stop(std::shared_ptr<joint_task> const& asking) {
  if (asking) asking->cancel(asio::error::operation_aborted);
}

}  // namespace

joint_hold::joint_hold(std::shared_ptr<joint_lock const> of, terms what)
    : terms_(what), of_(std::move(of)), count_(of_->rules().quorum), link_(what.link) {}

bool joint_hold::begin(joint_guard const& guard, std::vector<part> parts, std::weak_ptr<joint_task> asking) {
  for (auto const& hold : parts) hold->part_of = weak_from_this();
  if (!count_.begin(std::move(parts))) {
    count_.end();
    link_ = nullptr;  // it shows the next one, perhaps
    return false;
  }
  asking_ = std::move(asking);
  if (link_) link_->set_more().parts = shared_from_this();
  watch(guard);
  return true;
}

bool joint_hold::add(joint_guard const&, part late) {
  late->part_of = weak_from_this();
  return count_.add(std::move(late));
}

instant joint_hold::until() const {
  auto const guard = of_->guard();
  return count_.until();
}

void joint_hold::progress(instant now) {
  auto const guard = of_->guard();
  for (auto const& hold : count_.parts()) hold->progress(now);
}

bool joint_hold::lost() const {
  auto const guard = of_->guard();
  return count_.lost();
}

void joint_hold::unlink() {
  auto const guard = of_->guard();
  link_ = nullptr;
}

std::vector<joint_hold::part> joint_hold::parts() const {
  auto const guard = of_->guard();
  return count_.parts();
}

std::vector<joint_hold::part> joint_hold::take() {
  std::vector<part> taken;
  std::shared_ptr<joint_task> asking;
  bool awaited = false;
  {
    auto const guard = of_->guard();
    awaited = count_.lost() && !count_.parts().empty();
    count_.end();
    link_ = nullptr;
    cancel_timer(timer_);
    taken = count_.take();
    asking = std::exchange(asking_, {}).lock();
  }
  stop(asking);
  if (awaited) of_->engine->await_lease(-1);
  return taken;
}

void joint_hold::on_lost(error_code const& why) {
  {
    auto const guard = of_->guard();
    if (!count_.held() || !count_.too_few()) return;
  }
  lose(why);
}

void joint_hold::lose(error_code const& why) {
  core& engine = *of_->engine;
  std::vector<part> rest;
  std::shared_ptr<loss_listener> holder;
  std::shared_ptr<joint_task> asking;
  bool awaited = false;
  {
    auto const guard = of_->guard();
    if (!count_.held()) return;
    count_.lose();
    cancel_timer(timer_);
    // Where only a client closes, what is left is released by whoever works under it.
    if (why != errc::closed)
      rest = count_.take();
    else
      awaited = !count_.parts().empty();
    asking = std::exchange(asking_, {}).lock();
    if (link_) {
      link_->lost.store(true, std::memory_order_release);
      holder = static_cast<loss_listener*>(link_)->self();
    }
  }
  stop(asking);
  if (awaited) engine.await_lease(1);
  // Where only a member's client closes nothing else would end the renewals of the other members.
  if (awaited && !engine.closing()) {
    instant const end = after(boot_now(), engine.settings().close_timeout);
    auto const guard = of_->guard();
    if (!count_.ended())
      timer_ = run_later(engine, end, [weak = weak_from_this()] {
        if (auto const self = weak.lock()) self->renew_no_longer();
      });
  }
  for (auto const& hold : rest) hold->drop();
  if (holder) engine.post([told = holder, why] { told->tell(why); });
  of_->on_lost(*this);
}

void joint_hold::renew_no_longer() noexcept {
  for (auto const& hold : parts()) hold->renew_no_longer();
}

// Where clocks may run apart it ends before its members do: a timer tells of that. Renewals move the end on without a
// word: the timer looks again.
void joint_hold::watch(joint_guard const&) {
  if (!of_->rules().at_once || !count_.held()) return;
  cancel_timer(timer_);
  timer_ = run_later(*of_->engine, count_.until(), [weak = weak_from_this()] {
    if (auto const self = weak.lock()) self->on_time();
  });
}

void joint_hold::on_time() {
  {
    auto const guard = of_->guard();
    if (count_.until() > boot_now()) return watch(guard);
  }
  lose(errc::lease_lost);
}

}  // namespace latchkey::detail
