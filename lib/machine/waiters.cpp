#include <machine/owner_state.hpp>
#include <machine/waiters.hpp>

#include <algorithm>

namespace latchkey::detail {

bool wait_queue::head_idle() const {
  return !empty() && head().where == operation::place::waiting && !head().of_owner->ask_->under_way();
}

wait_queue::iterator wait_queue::first_once() {
  auto it = all_.end();
  for (unsigned found = 0; found < once_;) found += (--it)->asks_once();
  return it;
}

void wait_queue::wait_no_longer(operation& call) {
  once_ += call.queued && !call.asks_once();
  call.late = true;
}

void wait_queue::join(operation& call) {
  call.where = operation::place::waiting;
  call.queued = true;
  call.tried = false;
  call.joined = busy_answers_;
  call.ticket = ++tickets_;
  all_.push_back(call);
  ++size_;
  once_ += call.asks_once();
  owner_state& state = *call.of_owner;
  ++state.queued;
  if (!state.waits) state.waits = &call;
}

void wait_queue::leave(operation& call) {
  bool const was_head = is_head(call);
  call.queued = false;
  once_ -= call.asks_once();
  --size_;
  auto next = all_.erase(all_.iterator_to(call));
  // The pauses between looks grow with the time that the lock is not free, whoever looks.
  if (was_head && !call.yes && next != all_.end()) next->polls = std::max(next->polls, call.polls);
  owner_state& state = *call.of_owner;
  --state.queued;
  if (state.waits != &call) return;
  while (state.queued > 0 && next->of_owner != &state) ++next;
  state.waits = state.queued > 0 ? &*next : nullptr;
}

using namespace std::chrono_literals;

namespace {

constexpr milliseconds shortest_hint{2};      // a hint of zero is polled with this floor
constexpr milliseconds no_lease_hint{1'000};  // the holder's key has no time to live

}  // namespace

owner_state* waited_name::known(std::uint64_t owner) const {
  if (owner_state* const recent = shared_.recent.find(owners_, owner)) return recent;
  owner_state* const found = owners_.find(owner);
  if (found) shared_.recent.note(owners_, *found);
  return found;
}

std::uint64_t waited_name::shown_as(std::uint64_t owner) const {
  owner_state const* const state = known(owner);
  if (tenure_.lent(owner) && (!state || state->field == owner)) return context::no_owner;
  return state ? state->field : owner;
}

void waited_name::correct(operation& asked) const {
  if (asked.question != query::is_held_by && asked.question != query::hold_count) return;
  owner_state const* const state = known(asked.owner);
  if (!state || !tenure_.is_of(*state) || asked.value == 0) return;
  int const live = state->live(asked.mode);
  asked.value = asked.question == query::hold_count ? live : live > 0;
}

void waited_name::grant(operation& call) {
  nanoseconds const taken = shared_.now - call.started;
  ++shared_.counters.acquired;
  ++tally_.acquired;
  shared_.counters.contended += call.waited;
  tally_.contended += call.waited;
  count(shared_.counters.wait_time, taken);
  note(event_type::granted, call.owner, {}, {}, taken, context_of(call.link));
  call.yes = true;
}

instant waited_name::trusted_until(std::uint64_t owner, hold_id which) const {
  owner_state const* const state = known(owner);
  if (!state) return {};
  auto const held =
      std::find_if(state->holds.begin(), state->holds.end(), [&](auto const& h) { return h->id == which; });
  return held == state->holds.end() || (*held)->lost ? instant{} : (*held)->deadline;
}

bool waiters::told_at_once(owner_state& state, operation& call) {
  if (!call.asks_once() || !queue_.head_idle() || !queue_.head().tried) return false;
  operation const& head = queue_.head();
  if (head.error && !of_.holders_.keep_out(state, call.mode)) {
    of_.complete(call, head.error, head.text);
  } else {
    call.waited = true;
    of_.complete(call);
  }
  return true;
}

void waiters::enter(operation& call) {
  queue_.join(call);
  ++of_.shared_.counters.waiting;
  ++of_.tally_.waiting;
}

void waiters::leave(operation& call) {
  if (!call.queued) return;
  queue_.leave(call);
  --of_.shared_.counters.waiting;
  --of_.tally_.waiting;
}

void waiters::served(operation& call) {
  of_.grant(call);
  leave(call);
  of_.complete(call);
}

void waiters::serve_all(std::uint64_t up_to) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    operation& call = *it++;
    if (call.where == operation::place::waiting && call.ticket <= up_to && !call.keeps) served(call);
  }
}

void waiters::let_in_others(owner_state& holder) {
  if (holder.queued == 0) return;
  for (auto it = queue_.from(*holder.waits); it != queue_.end() && holder.queued > 0;) {
    operation& same = *it++;
    bool const waits_on =
        same.of_owner != &holder || of_.kind_->admit(same.mode, holder.live_by_mode()) == kind::admission::queue;
    if (waits_on) continue;
    leave(same);
    holder.behind.push_back(same);
    same.where = operation::place::behind_owner;
  }
}

void waiters::note_told(operation& head) {
  note_waiting(head);
  queue_.note_busy();
}

void waiters::note_waiting(operation& head) {
  if (!head.waited) of_.note(event_type::waiting, head.owner, {}, {}, {}, context_of(head.link));
  head.waited = head.tried = true;
  head.error = {};
}

void waiters::not_told(operation& call) {
  if (!queue_.busy_since_it_joined(call)) call.waited = false;
}

void waiters::refused(owner_state& state, request const& was, std::int64_t hint) {
  operation& call = *was.call;
  call.where = operation::place::waiting;
  call.unseen = false;
  note_told(call);
  bool const was_head = queue_.is_head(call);
  bool const stays = !call.asks_once();
  if (!stays) {
    leave(call);
    of_.complete(call);
  }
  told_busy(state, was, hint, stays, was_head);
}

void waiters::finish_once_calls(std::uint64_t up_to, unsigned modes, std::int64_t least, error_code const& why,
                                std::string_view text) {
  for (auto it = queue_.first_once(); it != queue_.end();) {
    operation& call = *it++;
    if (!call.asks_once() || call.where != operation::place::waiting || call.ticket > up_to) continue;
    if (call.amount < least) continue;
    if ((modes >> call.mode & 1u) == 0) continue;
    leave(call);
    call.waited = call.waited || !why;
    of_.complete(call, why, text);
  }
}

// Messages will not come. Until a channel of one's own is confirmed they do not either, and the server may take such a
// waiter for dead.
bool waiters::deaf(listener::view heard) const {
  return of_.shared_.unpublished ||
         (rules().own_channel ? heard != listener::view::on : heard == listener::view::refused);
}

milliseconds waiters::sleep_time(std::int64_t hint, bool deaf, unsigned polls) const {
  milliseconds const most =
      rules().hint_most > 0 ? milliseconds(rules().hint_most) : of_.shared_.settings.lock_watchdog_timeout;
  milliseconds pause = hint < 0 ? no_lease_hint : std::clamp(milliseconds(hint), shortest_hint, most);
  if (rules().polls || deaf) {
    milliseconds const next(std::min<std::int64_t>(rules().poll_first << std::min(polls, 16u), rules().poll_most));
    pause = std::min(pause, milliseconds(of_.shared_.random(next.count() / 2, next.count())));
  }
  // One millisecond more: PTTL rounds down, and a try just before the end would be wasted.
  return pause + 1ms;
}

either_waiters::either_waiters(waited_name& name) {
  if (name.kind_->rules().own_channel)
    these_ = &either_.emplace<own_channel_waiters>(name);
  else
    these_ = &either_.emplace<shared_channel_waiters>(name);
}

name_with_waiters::~name_with_waiters() = default;

// Never destroyed: a client of static storage may still release while the process exits.
wait_queue const& name_with_waiters::nobody() {
  static wait_queue const& the_one = *new wait_queue;
  return the_one;
}

waiters& name_with_waiters::make_waiting() {
  made_ = shared_.spare_waiters.make(static_cast<waited_name&>(*this));
  return **made_;
}

void name_with_waiters::give_back_waiting() noexcept {
  shared_.last_ticket = std::max(shared_.last_ticket, waiting().queue().ticket());
  shared_.spare_waiters.keep(std::move(made_));
}

}  // namespace latchkey::detail
