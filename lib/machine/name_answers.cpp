#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/transfer.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

void name_machine::answered(owner_state& state, outcome const& answer) {
  owner_state* const partner = state.ask_->partner;
  switch (state.ask_->what) {
    case ask::acquire: on_acquire_answer(state, answer); break;
    case ask::release:
      if (answer.what == outcome::type::unseen)
        on_unseen_give_back(state, answer);
      else
        on_release_answer(state, answer);
      break;
    case ask::hand_off: on_hand_off_answer(state, answer); break;
    case ask::extend: on_extend_answer(state, answer); break;
    case ask::renew: transfer::confirmed(*this, state, answer); break;
    case ask::leave: {
      request const was = *state.ask_;
      finish(state);
      state.in_line = false;
      repair_modes(state, was.fix | (was.owes ? 1u << was.mode : 0u));
      break;
    }
    case ask::command: on_command_answer(state, answer); break;
    default: return;
  }
  advance(state);
  if (partner) advance(*partner);
  waiting().wake();
  if (partner) tidy(*partner);
  tidy(state);
  tidy_served();
}

void name_machine::on_acquire_answer(owner_state& state, outcome const& answer) {
  request const was = *state.ask_;
  finish(state);
  switch (answer.what) {
    case outcome::type::granted: granted(state, was, was.sent, answer); return repair_modes(state, was.fix);
    case outcome::type::gone: {  // the outer holds are not on the server
      lose_mode(state, was.mode, errc::lease_lost);
      repair_modes(state, was.fix);
      if (was.abandoned || !was.call) return;
      was.call->unseen = was.repeated;
      if (state.ask_->under_way()) {
        state.behind.push_front(*was.call);
        was.call->where = operation::place::behind_owner;
        return;
      }
      return was.call->queued ? void() : acquire(state, *was.call);
    }
    case outcome::type::busy:
      repair_modes(state, was.fix);
      if (was.call && !was.abandoned) told_busy(state, was, answer.hint);
      return;
    case outcome::type::untried:
      repair_modes(state, was.fix);
      // A copy that was never answered may have been granted; this one only says that another member is busy now.
      if (was.may_stand()) repair(state, was.mode);
      return untried(was);
    case outcome::type::unseen: repair_modes(state, was.fix); return on_unseen(state, was);
    default:
      repair_modes(state, was.fix);
      // Nobody knows what an answer of unexpected form stands for, and a copy that was never answered may have been
      // granted before this one was refused: what the server may have granted is given back.
      if (answer.what == outcome::type::malformed || was.may_stand()) repair(state, was.mode);
      return fail_acquire(state, was, answer);
  }
}

void name_machine::on_release_answer(owner_state& state, outcome const& answer) {
  request const was = *state.ask_;
  finish(state);
  if (answer.what == outcome::type::still_held) {
    // Replicas are not asked about it, and the next master may have it for no longer than before.
    bool const longer = !shared_.asks_replicas();
    tenure_.confirmed(state, was, longer ? shared_.trusted_end(was.sent, milliseconds(was.lease)) : instant{});
  }
  conclude_release(state, was, answer);
  unsigned const own = 1u << was.mode;
  unsigned more_ended = was.fix;
  if (answer.what == outcome::type::still_held && state.live(was.mode) == 0) more_ended |= own;
  if (answer.what == outcome::type::absent) more_ended &= ~own;
  repair_modes(state, more_ended);
  // Nobody knows what an answer of unexpected form stands for: once more, and then the lease ends it.
  if (answer.what == outcome::type::malformed && !was.give_back) repair(state, was.mode);
  waiting().released(state, was.mode, answer);
}

// What the caller of a release is told, by what the server found.
void name_machine::conclude_release(owner_state& state, request const& was, outcome const& answer) {
  error_code error;
  release_result found = release_result::released;
  // (Without this what is released again at every change of masters would never grow old.)
  bool const known = was.give_back && answer.what == outcome::type::absent && shared_.released.has(state, was.mode);
  if ((was.target == 0 || answer.what == outcome::type::absent) && !known) takeover::may_come_back(state, was.mode);
  switch (answer.what) {
    case outcome::type::released: shared_.counters.given_back += was.give_back; break;
    case outcome::type::still_held: found = release_result::still_held; break;
    case outcome::type::absent:
      if (was.target > 0) {
        lose_mode(state, was.mode, errc::lease_lost);
        error = errc::lease_lost;
        found = release_result::expired;
      } else if (!was.repeated) {
        error = errc::lease_lost;
        found = release_result::expired;
      } else if (shared_.now >= was.until) {
        error = errc::connection_lost;
        found = release_result::unknown;
      }
      break;
    default: {
      error = error_of(answer);
      bool const has_lease = state.over_at != never && state.over_at != instant{};
      bool const stays = kind_->rules().takes && !has_lease;  // nothing else gives it back
      note(stays ? event_type::permit_lost : event_type::warning, state.owner, error, words_of(answer), {},
           was.context);
    }
  }
  if (answer.not_published) note(event_type::publish_refused, state.owner, {}, {}, {}, was.context);
  bool const published = was.what == ask::release && was.target == 0 && answer.what == outcome::type::released;
  if (published && kind_->rules().listens) shared_.unpublished = answer.not_published;
  if (!was.give_back && (!error || error == errc::lease_lost))
    note(error ? event_type::lost : event_type::released, state.owner, error, {}, shared_.now - was.began, was.context);
  if (!was.call) return;
  was.call->released = found;
  complete(*was.call, error, answer.text);
}

void name_machine::on_hand_off_answer(owner_state& state, outcome const& answer) {
  owner_state& to = *state.ask_->partner;
  request const was = *state.ask_;
  request next = *to.ask_;
  next.sent = was.sent;
  next.first_sent = was.first_sent;
  finish(state);
  finish(to);
  conclude_release(state, was, answer);
  bool const senseless = answer.what == outcome::type::malformed && !was.give_back;
  if (senseless) repair(state, was.mode);
  repair_modes(state, was.fix);
  switch (answer.grant) {
    case outcome::type::granted:
      ++shared_.counters.handed_off;
      ++tally_.handed_off;
      note(event_type::handed_off, to.owner, {}, {}, {}, next.context);
      granted(to, next, was.sent, answer);
      break;
    case outcome::type::busy:
      if (next.call && !next.abandoned) told_busy(to, next, answer.hint);
      break;
    default: {
      outcome refused = answer;
      refused.what = answer.grant;
      if (answer.grant == outcome::type::malformed || next.repeated || next.owes) repair(to, next.mode);
      fail_acquire(to, next, refused);
    }
  }
  repair_modes(to, next.fix);
}

void name_machine::on_extend_answer(owner_state& state, outcome const& answer) {
  request const was = *state.ask_;
  finish(state);
  hold* extended = state.find(was.extends);
  bool const live = holders_.lasts(extended);
  switch (answer.what) {
    case outcome::type::extended: {
      instant const until = shared_.trusted_end(was.sent, was.wanted);
      if (answer.unsynced) {
        std::string_view const why = answer.text.empty() ? std::string_view(too_few_replicas) : answer.text;
        if (was.call) complete(*was.call, errc::not_synced, why);
        break;
      }
      tenure_.confirmed(state, was, shared_.trusted_end(was.sent, milliseconds(was.lease)));
      if (live && until > extended->deadline) holders_.move_end(*extended, until);
      if (was.call) was.call->yes = live && until > shared_.now;
      if (was.call) complete(*was.call);
      break;
    }
    case outcome::type::absent:
      lose_mode(state, was.mode, errc::lease_lost);
      if (was.call) complete(*was.call);
      break;
    default:
      if (was.call) was.call->unseen = was.repeated;
      if (was.call) complete(*was.call, error_of(answer), words_of(answer));
  }
  repair_modes(state, was.fix);
}

// Who re-entered, and had lost the holds that let him when it was sent, queues like everybody.
void name_machine::told_busy(owner_state& state, request const& was, std::int64_t hint) {
  if (was.call->queued) return waiting().refused(state, was, hint);
  watch_deadline(*was.call);
  waiting().join(state, *was.call);
}

void name_machine::renewed(renewal& renewal, outcome const& answer) {
  owner_state& state = *renewal.of;
  renewal.under_way = false;
  if (renewal.stale) return after_renewal(renewal);
  if (answer.what == outcome::type::extended) {
    renewal.failures = 0;
    // What its holder has seen end does not come to life again because the answer was processed before the timer.
    lose_ended(state, renewal.mode);
    for (auto& h : state.holds) {
      if (!renewal.covers(*h)) continue;
      instant const until = h->renewed(renewal.sent, renewed_trust(shared_.settings));
      if (until <= h->deadline) continue;
      h->deadline = until;
      tenure_.renewed(state, renewal.mode, until);
      h->watchdog = until < h->renew_until;
      if (h->link) h->link->show(until);
    }
    ++shared_.counters.renewals;
    renewal.looks = false;
  } else if (answer.what == outcome::type::absent) {
    if (renewal.concerns_any()) {
      lose_mode(state, renewal.mode, errc::lease_lost);
      repair(state, renewal.mode);
    }
    renewal.looks = false;
  } else {
    note_at_risk(renewal, error_of(answer), answer.text);
  }
  after_renewal(renewal);
}

void name_machine::renewal_unanswered(renewal& renewal, error_code const& why) {
  renewal.under_way = false;
  note_at_risk(renewal, why, "a renewal was not answered");
  after_renewal(renewal);
}

void name_machine::note_at_risk(renewal& renewal, error_code const& why, std::string_view text) {
  auto const& holds = renewal.of->holds;
  auto const first =
      std::find_if(holds.begin(), holds.end(), [&](auto const& hold) { return renewal.concerns(*hold); });
  if (first == holds.end() || renewal.failures++ > 0) return;
  note(event_type::at_risk, renewal.of->owner, why, text, {}, (*first)->context);
}

void name_machine::after_renewal(renewal& renewal) {
  owner_state& state = *renewal.of;
  bool const stale = std::exchange(renewal.stale, false);
  if (state.live(renewal.mode) > 0) stale ? at_->renewals.look_for(renewal) : at_->renewals.again(renewal);
  advance(state);
  waiting().wake();
  tidy(state);
  tidy_served();
}

}  // namespace latchkey::detail
