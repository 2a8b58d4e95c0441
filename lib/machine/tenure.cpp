#include <machine/tenure.hpp>

#include <algorithm>

namespace latchkey::detail {

tenure::~tenure() {
  if (local_) of_.shared_.timers.drop(local_->due);
}

tenure::local_turns& tenure::local() {
  if (local_) return *local_;
  local_ = std::make_unique<local_turns>();
  local_->told = local_->moved = began_;
  return *local_;
}

timer_node& tenure::due(name_machine& of) {
  timer_node& node = local().due;
  node.what = timer_node::type::turn;
  node.of = &of;
  return node;
}

bool tenure::on(operation const& call) const {
  bool const delays = delay_of(call.link).count() > 0;
  return at_ && !doubted_ && !of_.shared_.barred.has(*at_) && !call.member && !delays &&
         call.what == operation::type::acquire && call.mode == mode() && !of_.shared_.closed();
}

bool tenure::fresh() const {
  instant const told = local_ ? local_->told : began_;
  return of_.shared_.now - told < to_nanoseconds(of_.shared_.settings.local_handoff.max_time);
}

// A hold that the watchdog renews has time for several renewals.
bool tenure::fits(operation const& call) const {
  instant const now = of_.shared_.now;
  if (call.lease.count() > 0) return after(now, call.lease) <= until_;
  return after(now, of_.shared_.settings.lock_watchdog_timeout / 2) <= until_;
}

bool tenure::may_reenter(owner_state const& state, operation const& call) const {
  return is_of(state) && on(call) && state.live(mode()) > 0 && !state.ask_->under_way() && fits(call);
}

bool tenure::may_pass(owner_state const& from, operation const& call) const {
  if (!is_of(from) || !on(call) || !fits(call)) return false;
  if (from.live() > from.live(mode())) return false;  // what it has beside stays in its field
  auto const& limit = of_.shared_.settings.local_handoff;
  if (turns() >= limit.max_streak || of_.shared_.now - began_ >= to_nanoseconds(limit.max_time)) return false;
  owner_state const& to = *call.of_owner;
  if (borrower() && borrower() != &from) return false;
  if (&to != &from && (to.ask_->under_way() || to.live() > 0 || to.in_line)) return false;
  // A release that has left may run at any time, also if it was taken back.
  request const& asked = *from.ask_;
  bool const unsent = asked.what == ask::release && asked.mode == mode() && asked.where == request::place::outbox &&
                      asked.target == 0 && !asked.repeated && !asked.owes && !asked.fix;
  return !asked.under_way() || unsent;
}

bool tenure::count_chance() {
  context const& shared = of_.shared_;
  local_turns& so_far = local();
  if (shared.now - std::exchange(so_far.asked_at, shared.now) > to_nanoseconds(in_a_row)) so_far.asked = 0;
  auto const by_server = static_cast<unsigned>(shared.settings.local_handoff.warm_up);
  so_far.asked = std::min(so_far.asked, by_server) + 1;
  return so_far.asked > by_server;
}

bool tenure::warmed() const {
  auto const by_server = static_cast<unsigned>(of_.shared_.settings.local_handoff.warm_up);
  if (!on() || by_server == 0) return on();
  return local_ && local_->asked > by_server && of_.shared_.now - local_->asked_at <= to_nanoseconds(in_a_row);
}

instant tenure::end_of(operation const& call) const {
  instant end = until_;
  if (call.lease.count() > 0) end = std::min(end, after(of_.shared_.now, call.lease));
  if (call.max_hold.count() > 0) end = std::min(end, after(of_.shared_.now, call.max_hold));
  return end;
}

void tenure::pass(owner_state& from, owner_state& to) {
  passed_ = true;
  ++local().turns;
  at_ = &to;
  if (&from == &to) return;
  to.field = std::exchange(from.field, from.owner);
  to.lasts_until(from.over_at);
  local_->borrower = to.field == to.owner ? nullptr : &to;
}

void tenure::count_moved() { local().moved = of_.shared_.now; }

instant tenure::confirm_at() const {
  if (!held() || (!doubted_ && !passed_ && shown_ == at_->live(mode()))) return never;
  return after(local_ ? local_->moved : began_, unnoticed);
}

void tenure::granted(owner_state& state, request const& was, instant until) {
  if (!on() || was.mode != mode()) return;
  if (was.call->member) return is_of(state) ? end() : void();  // what it votes for is known at the server alone
  if (was.target > 1) return is_of(state) ? confirmed(state, was, until) : void();
  at_ = &state;
  began_ = was.first_sent;
  until_ = until;
  passed_ = doubted_ = false;
  shown_ = static_cast<int>(was.target);
  if (!local_) return;
  local_->turns = 0;
  local_->told = was.sent;
  local_->moved = of_.shared_.now;
}

void tenure::sent(owner_state& state, request const& asked) {
  if (!is_of(state) || asked.mode != mode()) return;
  if ((asked.what == ask::release || asked.what == ask::hand_off) && asked.target == 0) return end();
  if (asked.what == ask::acquire && asked.target == 1) return end();  // it may make the time to live shorter
  if (asked.what != ask::extend) shown_ = -1;
  if (asked.what != ask::acquire)
    until_ = std::min(until_, of_.shared_.trusted_end(of_.shared_.now, milliseconds(asked.lease)));
}

void tenure::confirmed(owner_state& state, request const& was, instant until) {
  if (!is_of(state) || was.mode != mode()) return;
  until_ = std::max(until_, until);
  local().told = was.sent;
  if (was.what != ask::extend) shown_ = static_cast<int>(was.target);
  passed_ = false;
  if ((was.fix >> mode() & 1u) == 0) doubted_ = false;
}

void tenure::renewed(owner_state& state, unsigned char in_mode, instant until) {
  if (is_of(state) && in_mode == mode()) until_ = std::max(until_, until);
}

void tenure::lost(owner_state& state, unsigned char in_mode) {
  if (is_of(state) && in_mode == mode()) end();
}

void tenure::stand_in(owner_state& state, unsigned char in_mode) {
  if (of_.kind_->rules().shares(in_mode, in_mode) && lent(state.owner) && state.field == state.owner)
    state.field = of_.shared_.next_stand_in++;
}

void tenure::forget(owner_state& state) {
  if (is_of(state)) end();
  settle(state);
}

milliseconds tenure::beyond(operation const& call, std::size_t waiting) const {
  bool const others = waiting > (call.queued ? 1u : 0u);
  return on() && call.mode == mode() && others && !call.member && call.max_hold.count() == 0
             ? of_.shared_.settings.local_handoff.max_time
             : milliseconds(0);
}

void tenure::settle(owner_state& state) {
  if (!will_settle(state) || state.live() > 0 || state.ask_->under_way()) return;
  if (borrower() == &state && !is_of(state)) local_->borrower = nullptr;
  state.field = state.owner;
  state.client = nullptr;
}

}  // namespace latchkey::detail
