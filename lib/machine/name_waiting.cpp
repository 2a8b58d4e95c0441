#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/own_channel.hpp>

#include <algorithm>

namespace latchkey::detail {

using namespace std::chrono_literals;

namespace {

constexpr milliseconds shortest_hint{2};      // a hint of zero is polled with this floor
constexpr milliseconds no_lease_hint{1'000};  // the holder's key has no time to live
constexpr milliseconds linger_time{1'000};    // a channel is kept this long for the next waiter
constexpr milliseconds unheard_pause{50};     // in which a channel should be confirmed

}  // namespace

// A caller who holds nothing: behind those who came before.
void name_machine::join(owner_state& one, operation& call) {
  // Then the first one looks, for all.
  bool const hurries = streak_.left_beyond(shared_.now, call.patience());
  if (hurries) streak_.leave_no_longer();
  bool const head_was_told = !hurries && queue_.head_idle() && queue_.head().tried;
  if (call.once && head_was_told) {
    operation const& head = queue_.head();
    if (head.error && !holders_.keep_out(one, call.mode)) return complete(call, head.error, head.text);
    call.waited = true;
    return complete(call);
  }
  queue_.join(call);
  ++shared_.counters.waiting;
  ++tally_.waiting;
  watch_deadline(call);
  shared_.timers.drop(linger_);
  if (kind_.rules().own_channel) return wake_alone(one);
  if (hurries && queue_.size() > 1) return try_head();
  if (queue_.size() > 1) {  // what is tried before it lets it in beside, if anything
    operation const& before = queue_.before(call);
    bool const beside = kind_.rules().shares(before.mode, call.mode) && before.where == operation::place::trying;
    return beside ? try_beside(call, true) : void();
  }
  // The answer that resolves the name, or that ends what its owner has under way, makes it try.
  if (active_.in_doubt(kind_.rules(), call.mode) || one.ask_.under_way()) return;
  bool const behind_ours = holders_.keep_out(one, call.mode);
  bool const hears = listening() == view::on && !dirty_;
  if (!behind_ours || call.once || !(hears || listening() == view::off)) return try_head(true);
  // A caller of this client has it: the server would only say so. Messages and the hint do the rest.
  note_told(call);
  subscribe();
}

// Without a try of its own it is known what the server would say: busy.
void name_machine::note_told(operation& head) {
  if (!head.waited) note(event_type::waiting, head.owner);
  head.waited = head.tried = true;
  head.error = {};
  queue_.note_busy();
}

void name_machine::leave(operation& call) {
  if (!call.queued) return;
  queue_.leave(call);
  --shared_.counters.waiting;
  --tally_.waiting;
  if (call.of_owner->queued == 0) call.of_owner->own.reset();
  if (!queue_.empty()) return;
  shared_.timers.drop(hint_);
  if (listening() != view::off) shared_.timers.set(linger_, after(shared_.now, linger_time));
}

// The head left without being granted, or is the first who waits behind a grant: nobody looks after the lock now.
void name_machine::new_head() {
  if (queue_.empty() || kind_.rules().own_channel) return;  // there each looks after itself
  if (!queue_.head_idle()) {
    dirty_ = true;  // another request of its owner is under way; the answer makes it try
    return;
  }
  operation& head = queue_.head();
  // The confirmation makes it try, or a look if that does not come soon.
  if (listening() == view::asked && hint_.is_linked()) return look_soon();
  bool const heard = listening() != view::off;
  if ((!heard || !head.tried) && active_.in_doubt(kind_.rules(), head.mode)) return;
  if (heard) return try_head();
  bool const behind_ours = holders_.keep_out(*head.of_owner, head.mode);
  if (!kind_.rules().listens) {
    bool const answered = head.tried || queue_.busy_since_it_joined(head);
    if (answered && hint_.is_linked()) return;
    if (!behind_ours) return try_head();
    note_told(head);
  } else if (!head.tried && !behind_ours) {
    return try_head();
  }
  subscribe();
}

// One request for the head of the queue: with a release that still waits to be sent it makes a hand-off.
void name_machine::try_head(bool may_go_direct) {
  if (!queue_.head_idle() || kind_.rules().own_channel) return;
  operation& head = queue_.head();
  owner_state& one = *head.of_owner;
  owner_state* leaving = kind_.rules().takes ? active_.unsent_release(one) : nullptr;
  if (leaving && !streak_.allows(shared_.settings.local_handoff,
                                 shared_.now)) {  // it is really released first; its answer wakes the head
    dirty_ = true;
    return;
  }
  if (leaves_to_others(head)) return;
  dirty_ = false;
  shared_.timers.drop(hint_);
  bool const direct = may_go_direct && queue_.size() == 1;
  if (leaving && !kind_.rules().hand_off) {  // it leaves in the same turn, right behind the release
    streak_.count(shared_.now);
    return send_acquire(one, head, false);
  }
  if (!leaving) return send_acquire(one, head, direct && !active_.release_sent());
  shared_.requests->remove(*leaving);
  pair_up(*leaving, head);
  send(*leaving, direct);
}

// An answer has come: a head that waited for the name to be resolved, or that hears no messages, tries.
void name_machine::wake_parked() {
  if (kind_.rules().own_channel) return wake_all_alone();
  if (!queue_.head_idle() || active_.in_doubt(kind_.rules(), queue_.head().mode)) return;
  operation const& head = queue_.head();
  if (dirty_ && (listening() != view::asked || !hint_.is_linked())) return try_head();
  if (!head.tried || listening() == view::off) new_head();
}

void name_machine::subscribe() {
  if (listening() == view::off && kind_.rules().listens) shared_.channels->want(channel(), *this);
  if (!hint_.is_linked() && !holders_.empty()) sleep_until_hint(left(shared_.now, holders_.latest_deadline()).count());
}

// The hint timer runs from the busy answer, subscribed or not.
void name_machine::sleep_until_hint(std::int64_t hint) {
  unsigned const polls = queue_.empty() ? 0 : queue_.head().polls;
  shared_.timers.set(hint_, after(shared_.now, sleep_time(hint, listening() == view::refused, polls)));
}

// It may be free, and the channel on which that is said is not confirmed: perhaps it never will be.
void name_machine::look_soon() {
  instant const at = after(shared_.now, unheard_pause);
  if (!hint_.is_linked() || hint_.at > at) shared_.timers.set(hint_, at);
}

milliseconds name_machine::sleep_time(std::int64_t hint, bool deaf, unsigned polls) {
  auto const& rules = kind_.rules();
  milliseconds const most =
      rules.hint_most > 0 ? milliseconds(rules.hint_most) : shared_.settings.lock_watchdog_timeout;
  milliseconds pause = hint < 0 ? no_lease_hint : std::clamp(milliseconds(hint), shortest_hint, most);
  if (rules.polls || deaf) {
    milliseconds const next(std::min<std::int64_t>(rules.poll_first << std::min(polls, 16u), rules.poll_most));
    pause = std::min(pause, milliseconds(shared_.random(next.count() / 2, next.count())));
  }
  // One millisecond more: PTTL rounds down, and a try just before the end would be wasted.
  return pause + 1ms;
}

// Calls without a wait have their answer as soon as somebody else was found, or made, the holder.
void name_machine::finish_once_calls(std::uint64_t up_to, unsigned sides, std::int64_t least) {
  for (auto it = queue_.first_once(); it != queue_.end();) {
    operation& call = *it++;
    if (!call.once || call.where != operation::place::waiting || call.ticket > up_to) continue;
    if (call.amount < least) continue;
    if ((sides >> call.mode & 1u) == 0) continue;
    leave(call);
    call.waited = true;
    complete(call);
  }
}

// Nor would they be told anything else than the head, which waits for the trouble to pass.
void name_machine::refuse_once_calls(error_code const& why, std::string_view text) {
  for (auto it = queue_.first_once(); it != queue_.end();) {
    operation& call = *it++;
    if (!call.once || call.where != operation::place::waiting) continue;
    leave(call);
    complete(call, why, text);
  }
}

// --- what wakes the head ---

void name_machine::on_confirmed() {
  if (!queue_.head_idle()) {
    dirty_ = true;  // the try under way may have run before the server listened for us
    return;
  }
  if (parked(queue_.head())) return;  // only the answer that resolves the name makes it try
  try_head();
}

void name_machine::on_message(std::string_view payload) {
  ++shared_.counters.messages;
  if (!kind_.wakes(payload)) return;
  bool const may_try = queue_.head_idle() && !parked(queue_.head());
  if (may_try)
    try_run();
  else
    dirty_ = true;
}

// The head, and with one whose side several share those behind it up to the first who shares it not, all in one group.
// Nobody tries past a waiter whom he would keep out.
void name_machine::try_run() {
  if (!queue_.head_idle() && queue_.head().where == operation::place::waiting)
    dirty_ = true;  // its owner's answer wakes it
  try_head();
  for (auto it = queue_.begin(); it != queue_.end() && kind_.rules().shares(queue_.head().mode, it->mode);)
    try_beside(*it++, false);
}

void name_machine::try_beside(operation& call, bool may_go_direct) {
  owner_state& one = *call.of_owner;
  if (call.where != operation::place::waiting || one.ask_.under_way() || active_.in_doubt(kind_.rules(), call.mode))
    return;
  send_acquire(one, call, may_go_direct && !active_.release_sent());
}

void name_machine::on_refused() {
  if (queue_.head_idle() && !parked(queue_.head())) sleep_until_hint(shared_.settings.lock_watchdog_timeout.count());
}

void name_machine::on_hint() {
  if (!queue_.head_idle() || parked(queue_.head())) {
    dirty_ = true;
    return;
  }
  try_head();
}

void name_machine::on_linger() {
  if (!queue_.empty() || listening() == view::off) return;
  shared_.channels->drop(channel(), *this);
}

}  // namespace latchkey::detail
