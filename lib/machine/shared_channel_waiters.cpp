#include <machine/outbox.hpp>
#include <machine/waiters.hpp>
#include <wire/server_error.hpp>

#include <algorithm>
#include <optional>

namespace latchkey::detail {

namespace {

constexpr milliseconds linger_time{1'000};  // a channel is kept this long for the next waiter
constexpr milliseconds unheard_pause{50};   // in which a channel should be confirmed
// Whoever released it would hear of it first, and win three times of four. For each client that has waited for longer.
constexpr std::chrono::microseconds pause_for_others{100};

}  // namespace

shared_channel::shared_channel(shared_channel_waiters& in) : in_(in) {
  hint.what = timer_node::type::hint;
  linger.what = timer_node::type::linger;
  hint.of = linger.of = &in;
}

shared_channel::~shared_channel() {
  in_.of_.shared_.timers.drop(hint);
  in_.of_.shared_.timers.drop(linger);
}

void shared_channel::on_confirmed() { in_.on_confirmed(); }

void shared_channel::on_message(std::string_view payload) { in_.on_message(payload); }

void shared_channel::on_refused() { in_.on_refused(); }

void shared_channel_waiters::had() {
  rotation_.had();
  of_.reign_.had(of_.shared_.now);
}

bool shared_channel_waiters::forgettable() const {
  return waiters::forgettable() && !channel_ && !heard() && rotation_.alone(of_.shared_.now);
}

shared_channel& shared_channel_waiters::channel() {
  if (!channel_) channel_ = std::make_unique<shared_channel>(*this);
  return *channel_;
}

// Whoever has to wait for messages takes memory in any case. Who only looks takes none then.
void shared_channel_waiters::make_room() {
  if (!rules().listens) channel();
}

void shared_channel_waiters::close() {
  if (listening() != view::off) of_.at_->channels.drop(channel_name(), *channel_);
  channel_.reset();
}

void shared_channel_waiters::move(home& from) {
  if (listening() == view::off) return;
  from.channels.drop(channel_name(), *channel_);
  of_.at_->channels.want(channel_name(), *channel_);
}

// The same that `join` and `try_head` ask, of a call that is not there yet.
bool shared_channel_waiters::keeps_back(operation const& call) const {
  owner_state const* const state = of_.known(call.owner);
  if (state && state->ask_->under_way()) return false;  // what is behind that may leave together again
  if (state && of_.kind_->admit(call.mode, state->live_by_mode()) != kind::admission::queue) return false;
  if (call.comes_back && streak_.left(of_.shared_.now)) return true;
  return !queue_.empty() || of_.in_doubt(call.mode) || of_.tenure_.held() || field_taken(call.owner, call.mode);
}

void shared_channel_waiters::join(owner_state& state, operation& call) {
  if (call.comes_back && streak_.left(of_.shared_.now)) {
    call.untried = true;
    return of_.complete(call);
  }
  // Then the first one looks, for all.
  bool const hurries = streak_.left_beyond(of_.shared_.now, call.patience());
  if (hurries) streak_.leave_no_longer();
  if (!hurries && told_at_once(state, call)) return;
  enter(call);
  if (channel_) of_.shared_.timers.drop(channel_->linger);
  if (hurries && queue_.size() > 1) return try_head();
  if (queue_.size() > 1) {  // what is tried before it lets it in beside, if anything
    operation const& before = queue_.before(call);
    bool const beside = rules().shares(before.mode, call.mode) && before.where == operation::place::trying;
    return beside ? try_beside(call, true) : void();
  }
  // The answer that resolves the name, or that ends what its owner has under way, makes it try.
  if (of_.in_doubt(call.mode) || state.ask_->under_way()) return;
  bool const behind_ours = of_.holders_.keep_out(state, call.mode);
  bool const hears = listening() == view::on && !heard();
  if (!behind_ours || call.asks_once() || !(hears || listening() == view::off)) return try_head(true);
  // A caller of this client has it: the server would only say so. Messages and the hint do the rest.
  note_told(call);
  subscribe();
}

void shared_channel_waiters::leave(operation& call) {
  bool const stood_here = call.queued;
  waiters::leave(call);
  if (!stood_here || !queue_.empty() || !channel_) return;
  look_no_more();
  if (!rules().listens) return;
  if (listening() == view::off) return channel_.reset();
  of_.shared_.timers.set(channel_->linger, after(of_.shared_.now, linger_time));
}

void shared_channel_waiters::new_head(operation const* slept) {
  if (queue_.empty()) return;
  if (!queue_.head_idle()) {
    remember(wake_up::turn);  // another request of its owner is under way; the answer makes it try
    return;
  }
  operation& head = queue_.head();
  // What that one was told still stands, and what would have woken it wakes whoever wants no less.
  bool const hears = listening() == view::on || !rules().listens;
  if (slept && hears && looks() && !heard() && !streak_.left(of_.shared_.now) && head.mode == slept->mode &&
      head.amount >= slept->amount && !head.asks_once() && !parked(head))
    return note_told(head);
  // The confirmation makes it try, or a look if that does not come soon.
  if (listening() == view::asked && looks()) return look_soon();
  bool const heard = listening() != view::off;
  if ((!heard || !head.tried) && of_.in_doubt(head.mode)) return;
  if (heard) return try_head();
  bool const behind_ours = of_.holders_.keep_out(*head.of_owner, head.mode);
  if (!rules().listens) {
    bool const answered = head.tried || queue_.busy_since_it_joined(head);
    if (answered && looks()) return;
    if (!behind_ours) return try_head();
    note_told(head);
  } else if (!head.tried && !behind_ours) {
    return try_head();
  }
  subscribe();
}

// One request for the head of the queue: with a release that still waits to be sent it makes a hand-off.
void shared_channel_waiters::try_head(bool may_go_direct) {
  if (!queue_.head_idle()) return;
  context& shared = of_.shared_;
  operation& head = queue_.head();
  // One tenure, one request: as long as the server shows one of ours, or may, no other is asked for.
  tenure& ours = of_.tenure_;
  if (ours.held()) {
    bool const looks = head.asks_once() || rules().polls || deaf(listening());
    if (!ours.certain() || (looks && !ours.fresh())) {
      ++head.polls;
      return doubt();
    }
    return wait_for_ours();
  } else if (field_taken(head.of_owner->owner, head.mode)) {
    return wait_for_field();
  }
  owner_state* leaving = rules().takes ? of_.active_.unsent_release(*head.of_owner) : nullptr;
  if (leaving) {
    // It is really released first; its answer wakes the head.
    if (!streak_.allows(shared.settings.local_handoff, shared.now)) return remember(wake_up::release);
    if (ours.may_pass(*leaving, head) && ours.count_chance()) return of_.pass_on(*leaving, head);
  }
  if (leaves_to_others(head)) return;
  bool const hands_off = onward().hands_off();
  if (leaving && hands_off &&
      (shared.barred.has(*head.of_owner) || !ours.may_be_handed(*leaving, *head.of_owner) ||
       !of_.at_->passes_on(*leaving->ask_, shared.now)))
    return remember(wake_up::release);
  unfollowed_ = wake_up::none;
  look_no_more();
  bool const direct = may_go_direct && queue_.size() == 1;
  if (leaving && !hands_off) {  // it leaves in the same turn, right behind the release
    streak_.count(shared.now);
    return of_.send_acquire(head, false);
  }
  if (!leaving) return of_.send_acquire(head, direct && !of_.active_.release_sent());
  of_.hand_over(*leaving, head, direct);
}

// A caller of this client has it, as far as anybody could say.
void shared_channel_waiters::wait_for_ours() {
  bool const told_free = unfollowed_ == wake_up::message || unfollowed_ == wake_up::confirmation;
  unfollowed_ = wake_up::none;
  note_told(queue_.head());
  finish_once_calls(queue_.ticket());
  if (queue_.empty()) return;
  if (!queue_.head().tried) note_told(queue_.head());
  subscribe();
  if (told_free) of_.doubt();  // perhaps before it was granted, perhaps since
}

// It stands for what another one has, or for a release under way.
bool shared_channel_waiters::field_taken(std::uint64_t owner, unsigned char mode) const {
  tenure const& ours = of_.tenure_;
  return (ours.lent(owner) && !rules().shares(mode, mode)) || (ours.on() && of_.active_.release_sent(ours.mode()));
}

// The answer to that wakes it.
void shared_channel_waiters::wait_for_field() {
  operation& head = queue_.head();
  remember(wake_up::release);
  if (!of_.holders_.keep_out(*head.of_owner, head.mode)) return;
  note_told(head);
  finish_once_calls(queue_.ticket(), 1u << head.mode);
  if (!queue_.empty() && !queue_.is_head(head)) new_head();
}

// The lock may be free although a caller of this client has it: the question after that hold says so.
void shared_channel_waiters::doubt() {
  remember(wake_up::turn);
  of_.doubt();
}

void shared_channel_waiters::wake() {
  if (!queue_.head_idle() || of_.in_doubt(queue_.head().mode)) return;
  operation const& head = queue_.head();
  if (heard() && (listening() != view::asked || !looks())) return try_head();
  if (!head.tried || listening() == view::off) new_head();
}

void shared_channel_waiters::paired() {
  unfollowed_ = wake_up::none;
  look_no_more();
}

// --- when to look ---

void shared_channel_waiters::subscribe() {
  if (listening() == view::off && rules().listens) of_.at_->channels.want(channel_name(), channel());
  if (!looks() && !of_.holders_.empty())
    sleep_until_hint(left(of_.shared_.now, of_.holders_.latest_deadline()).count());
}

void shared_channel_waiters::look_no_more() {
  if (channel_) of_.shared_.timers.drop(channel_->hint);
}

// The hint timer runs from the busy answer, subscribed or not.
void shared_channel_waiters::sleep_until_hint(std::int64_t hint) {
  unsigned const polls = queue_.empty() ? 0 : queue_.head().polls;
  look_at(after(of_.shared_.now, sleep_time(hint, deaf(listening()), polls)));
}

// It may be free, and the channel on which that is said is not confirmed: perhaps it never will be.
void shared_channel_waiters::look_soon() {
  instant const at = after(of_.shared_.now, unheard_pause);
  if (!looks() || channel_->hint.at > at) look_at(at);
}

// What is left to others after a streak nobody of this client takes, unless the first of them cannot wait for so long,
// or some do not wait at all.
bool shared_channel_waiters::leaves_to_others(operation& head) {
  instant const now = of_.shared_.now;
  if (!streak_.left(now) || queue_.any_once()) return false;
  if (streak_.left_beyond(now, head.patience())) return false;
  if (!head.tried) note_waiting(head);
  look_at(streak_.left_until());
  return true;
}

// A release was heard, by others, too.
void shared_channel_waiters::let_others_first() {
  unsigned char const mode = queue_.head().mode;
  if (!rules().exclusive || rules().shares(mode, mode)) return;
  if (rotation_.ahead() > 0)
    streak_.leave_until(after(of_.shared_.now, pause_for_others * rotation_.ahead()));
  else if (rotation_.went_on())
    streak_.leave_no_longer();
}

// --- answers ---

// The server said: somebody else has it.
void shared_channel_waiters::told_busy(owner_state&, request const& was, std::int64_t hint, bool stays, bool was_head) {
  std::int64_t const refused = was.amount;
  rotation_.others_have_it(of_.shared_.now);
  of_.reign_.end();
  // Who came after the try was sent has not been answered by it, unless a waiter stands before him.
  // What it found may also have been our own remains: then it proves nothing for the others.
  bool const proves = stays || !of_.in_doubt(was.mode);
  // Nor does it prove for a mode that several share that somebody else was in the way of another mode.
  unsigned modes = ~0u;
  if (!stays && !rules().shares(was.mode, was.mode)) modes = ~unsigned(rules().shared_modes);
  // Nor that there is not enough for who wants less.
  if (proves) finish_once_calls(stays ? queue_.ticket() : was.ticket, modes, stays ? 0 : refused);
  if (queue_.empty() || !was_head) return;
  operation& head = queue_.head();
  bool const asked_too = head.ticket <= was.ticket && head.amount >= refused && (modes >> head.mode & 1u) != 0;
  if (&head != was.call && (!asked_too || !proves || !queue_.head_idle())) return new_head();
  head.tried = true;
  if (heard() && listening() == view::on && queue_.head_idle()) {
    if (unfollowed_ == wake_up::message) let_others_first();
    return try_head();
  }
  if (hint < 0) of_.note(event_type::no_time_to_live);
  if (listening() == view::off && rules().listens) new_head();
  if (listening() == view::refused) of_.at_->channels.ask_refused(channel_name());
  sleep_until_hint(hint);
  if (heard() && listening() == view::asked) look_soon();
  ++head.polls;
}

void shared_channel_waiters::put_off(owner_state&, request const& was, milliseconds pause) {
  if (!queue_.is_head(*was.call)) return;
  not_told(*was.call);
  refuse_once_calls(was.call->error, was.call->text);
  look_at(after(of_.shared_.now, pause));
}

void shared_channel_waiters::granted(request const& was, outcome const& answer, instant deadline, bool heard) {
  bool const shares = rules().shares(was.mode, queue_.head().mode);
  // Of a run that is on its way the last one to be answered looks after who has come meanwhile.
  if (shares && !parked(queue_.head())) return queue_.head().where == operation::place::trying ? void() : try_run();
  if (heard && listening() == view::on) return try_head();
  if (answer.spent && queue_.head_idle()) {  // the answer was for the next one, too
    note_told(queue_.head());
    if (listening() == view::off) new_head();
    return sleep_until_hint(answer.hint);
  }
  if (rules().grant_wakes_next) return try_head();
  if (listening() == view::on || listening() == view::refused) {
    if (!queue_.head_idle()) return new_head();
    if (rules().exclusive && !shares) {  // a caller of this client has it: a try would only hear so
      note_told(queue_.head());
      if (!queue_.head().asks_once()) finish_once_calls(queue_.ticket());
    }
    return sleep_until_hint(left(of_.shared_.now, deadline).count());
  }
  new_head();
}

void shared_channel_waiters::released(owner_state const& state, unsigned char mode, outcome const& answer) {
  if (answer.listeners > 0) rotation_.released_to(answer.listeners, leaves_it());
  if (answer.not_published && queue_.head_idle()) try_head();
  if (answer.what == outcome::type::released) look_after_release(answer);
  // It had ended before, perhaps earlier than the head was told, and where PUBLISH is refused no message says so.
  if (answer.what == outcome::type::absent && state.live() == 0) new_head();
  bool const of_ours = of_.tenure_.is_of(state) && mode == of_.tenure_.mode();
  if (of_ours && answer.what != outcome::type::still_held) look_later(answer);
}

// The question after what a caller of this client has was refused, and would be at once again.
void shared_channel_waiters::look_later(outcome const& refused) {
  unfollowed_ = wake_up::none;
  refuse_once_calls(error_of(refused), words_of(refused));
  if (!queue_.head_idle()) return;
  operation& head = queue_.head();
  head.tried = true;
  head.text = words_of(refused);
  look_at(after(of_.shared_.now, of_.shared_.pause(++head.polls, of_.shared_.settings.retry_delay)));
}

namespace {

// Whoever hears of a release is slower than who is told by its answer, and has come too late for as long as a streak
// may last.
bool reigned_over(int others, waited_name const& of) {
  return others > 0 && of.kind_->rules().exclusive &&
         of.reign_.lasts(of.shared_.now) >= to_nanoseconds(of.shared_.settings.local_handoff.max_time);
}

}  // namespace

// The lock is free, and whoever takes it next is told so. Where nobody is, or the head may not hear it yet, it looks
// after a pause in which others may take it.
void shared_channel_waiters::look_after_release(outcome const& answer) {
  if (!rules().listens) {
    std::optional<instant> first;  // of turns one hold may be a whole streak
    if (of_.tenure_.on() && !queue_.empty()) first = of_.tenure_.began();
    if (reigned_over(rotation_.contended(of_.shared_.now), of_)) {
      first = of_.shared_.now - of_.reign_.lasts(of_.shared_.now);
      of_.reign_.end();
    }
    streak_.leave(of_.shared_.settings.local_handoff, of_.shared_.now, milliseconds(rules().poll_most), first);
    if (!queue_.head_idle()) return;
    queue_.head().polls = 0;
    if (!leaves_to_others(queue_.head())) sleep_until_hint(0);
    return;
  }
  bool const reigned = reigned_over(answer.listeners - (listening() == view::on), of_);
  if (reigned) of_.reign_.end();
  if (reigned || (leaves_it() && !queue_.empty()))
    streak_.leave_until(after(of_.shared_.now, pause_for_others * std::max(rotation_.ahead(), 1)));
  if (listening() == view::asked) new_head();
}

// --- what wakes the head ---

void shared_channel_waiters::on_confirmed() {
  if (of_.tenure_.holder()) return doubt();  // what was said before was not heard
  if (!queue_.head_idle()) {
    remember(wake_up::confirmation);
    return;
  }
  if (parked(queue_.head())) return;  // only the answer that resolves the name makes it try
  try_head();
}

void shared_channel_waiters::on_message(std::string_view payload) {
  ++of_.shared_.counters.messages;
  if (!of_.kind_->wakes(payload)) return;
  rotation_.heard();
  if (of_.tenure_.holder()) return doubt();
  // The answer to our own release is not far, and then others have their chance first.
  if (leaves_it() && of_.active_.release_sent()) return remember(wake_up::message);
  if (!queue_.head_idle() || parked(queue_.head())) return remember(wake_up::message);
  let_others_first();
  try_run();
}

// The head, and with one whose mode several share those behind it up to the first who shares it not, all in one group.
// Nobody tries past a waiter whom he would keep out.
void shared_channel_waiters::try_run() {
  if (!queue_.head_idle() && queue_.head().where == operation::place::waiting)
    remember(wake_up::turn);  // its owner's answer wakes it
  try_head();
  for (auto it = queue_.begin(); it != queue_.end() && rules().shares(queue_.head().mode, it->mode);)
    try_beside(*it++, false);
}

void shared_channel_waiters::try_beside(operation& call, bool may_go_direct) {
  if (call.where != operation::place::waiting || call.of_owner->ask_->under_way() || of_.in_doubt(call.mode)) return;
  of_.send_acquire(call, may_go_direct && !of_.active_.release_sent());
}

void shared_channel_waiters::on_refused() {
  if (queue_.head_idle() && !parked(queue_.head()))
    sleep_until_hint(of_.shared_.settings.lock_watchdog_timeout.count());
}

void shared_channel_waiters::on_hint() {
  if (!queue_.head_idle() || parked(queue_.head())) {
    remember(wake_up::hint);
    return;
  }
  try_head();
}

void shared_channel_waiters::on_linger() {
  if (!queue_.empty() || listening() == view::off) return;
  of_.at_->channels.drop(channel_name(), *channel_);
  if (!looks()) channel_.reset();
  rotation_ = {};
  of_.reign_.end();
}

}  // namespace latchkey::detail
