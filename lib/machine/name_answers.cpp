#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

void name_machine::answered(owner_state& one, outcome const& answer) {
  owner_state* const partner = one.ask_.partner;
  switch (one.ask_.what) {
    case ask::acquire: on_acquire_answer(one, answer); break;
    case ask::release:
      if (answer.what == outcome::type::unseen)
        on_unseen_give_back(one, answer);
      else
        on_release_answer(one, answer);
      break;
    case ask::hand_off: on_hand_off_answer(one, answer); break;
    case ask::extend: on_extend_answer(one, answer); break;
    case ask::leave: on_leave_answer(one); break;
    case ask::command: on_command_answer(one, answer); break;
    default: return;
  }
  advance(one);
  if (partner) advance(*partner);
  waiters_->wake();
  if (partner) tidy(*partner);
  tidy(one);
  tidy_served();
}

void name_machine::on_acquire_answer(owner_state& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  switch (answer.what) {
    case outcome::type::granted: granted(one, was, was.sent, answer); return repair_sides(one, was.fix);
    case outcome::type::gone: {  // the outer holds are not on the server
      lose_side(one, was.mode, errc::lease_lost);
      repair_sides(one, was.fix);
      if (was.abandoned || !was.call) return;
      was.call->unseen = was.repeated;
      if (one.ask_.under_way()) {
        one.behind.push_front(*was.call);
        was.call->where = operation::place::behind_owner;
        return;
      }
      return was.call->queued ? void() : acquire(one, *was.call);
    }
    case outcome::type::busy:
      repair_sides(one, was.fix);
      if (was.call && !was.abandoned) told_busy(one, was, answer.hint);
      return;
    case outcome::type::untried:
      repair_sides(one, was.fix);
      // A copy that was never answered may have been granted; this one only says that another member is busy now.
      if (was.repeated || was.owes) repair(one, was.mode);
      return untried(was);
    case outcome::type::unseen: repair_sides(one, was.fix); return on_unseen(one, was);
    default:
      repair_sides(one, was.fix);
      // Nobody knows what an answer of unexpected form stands for, and a copy that was never answered may have been
      // granted before this one was refused: what the server may have granted is given back.
      if (answer.what == outcome::type::malformed || was.repeated || was.owes) repair(one, was.mode);
      return fail_acquire(one, was, answer);
  }
}

void name_machine::on_release_answer(owner_state& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  if (answer.what == outcome::type::still_held)
    tenure_.confirmed(one, was, shared_.trusted_end(was.sent, milliseconds(was.lease)));
  conclude_release(one, was, answer);
  unsigned const own = 1u << was.mode;
  unsigned more_ended = was.fix;
  if (answer.what == outcome::type::still_held && one.live(was.mode) == 0) more_ended |= own;
  if (answer.what == outcome::type::absent) more_ended &= ~own;
  repair_sides(one, more_ended);
  // Nobody knows what an answer of unexpected form stands for: once more, and then the lease ends it.
  if (answer.what == outcome::type::malformed && !was.give_back) repair(one, was.mode);
  waiters_->released(one, answer);
}

// What the caller of a release is told, by what the server found.
void name_machine::conclude_release(owner_state& one, request const& was, outcome const& answer) {
  error_code error;
  release_result found = release_result::released;
  if (shared_.may_move && was.target == 0 && kind_.rules().exclusive && !one.client) {
    // (Without this what is released again at every change of masters would never grow old.)
    bool const known = was.give_back && answer.what == outcome::type::absent && shared_.released.has(one, was.mode);
    // Behind an ASK it ran where the name is not yet.
    if (!known) shared_.released.add(shared_.answers ? *shared_.answers : *at_, one, was.mode, shared_.now);
  }
  switch (answer.what) {
    case outcome::type::released: break;
    case outcome::type::still_held: found = release_result::still_held; break;
    case outcome::type::absent:
      if (was.target > 0) {
        lose_side(one, was.mode, errc::lease_lost);
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
      bool const has_lease = one.over_at != never && one.over_at != instant{};
      bool const stays = kind_.rules().takes && !has_lease;  // nothing else gives it back
      note(stays ? event_type::permit_lost : event_type::warning, one.owner, error, words_of(answer), {}, was.context);
    }
  }
  if (answer.not_published) note(event_type::publish_refused, one.owner, {}, {}, {}, was.context);
  bool const published = was.what == ask::release && was.target == 0 && answer.what == outcome::type::released;
  if (published && kind_.rules().listens) shared_.unpublished = answer.not_published;
  if (!was.give_back && !error) note(event_type::released, one.owner, {}, {}, shared_.now - was.began, was.context);
  if (!was.call) return;
  was.call->released = found;
  complete(*was.call, error, answer.text);
}

void name_machine::on_hand_off_answer(owner_state& one, outcome const& answer) {
  owner_state& to = *one.ask_.partner;
  request const was = one.ask_;
  request const next = to.ask_;
  finish(one);
  finish(to);
  conclude_release(one, was, answer);
  bool const senseless = answer.what == outcome::type::malformed && !was.give_back;
  if (senseless) repair(one, was.mode);
  repair_sides(one, was.fix);
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
  repair_sides(to, next.fix);
}

void name_machine::on_extend_answer(owner_state& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  hold* extended = one.find(was.extends);
  bool const live = holders_.lasts(extended);
  switch (answer.what) {
    case outcome::type::extended: {
      instant const until = shared_.trusted_end(was.sent, was.wanted);
      if (answer.unsynced) {
        std::string_view const why = answer.text.empty() ? std::string_view(too_few_replicas) : answer.text;
        if (was.call) complete(*was.call, errc::not_synced, why);
        break;
      }
      tenure_.confirmed(one, was, shared_.trusted_end(was.sent, milliseconds(was.lease)));
      if (live && until > extended->deadline) holders_.move_end(*extended, until);
      if (was.call) was.call->yes = live && until > shared_.now;
      if (was.call) complete(*was.call);
      break;
    }
    case outcome::type::absent:
      lose_side(one, was.mode, errc::lease_lost);
      if (was.call) complete(*was.call);
      break;
    default:
      if (was.call) was.call->unseen = was.repeated;
      if (was.call) complete(*was.call, error_of(answer), words_of(answer));
  }
  repair_sides(one, was.fix);
}

void name_machine::on_leave_answer(owner_state& one) {
  request const was = one.ask_;
  finish(one);
  one.in_line = false;
  repair_sides(one, was.fix | (was.owes ? 1u << was.mode : 0u));
}

// Who re-entered, and had lost the holds that let him when it was sent, queues like everybody.
void name_machine::told_busy(owner_state& one, request const& was, std::int64_t hint) {
  if (was.call->queued)
    waiters_->refused(one, was, hint);
  else
    enqueue(one, *was.call);
}

void name_machine::renewed(renewal& side, outcome const& answer) {
  owner_state& one = *side.of;
  side.under_way = false;
  if (answer.what == outcome::type::extended) {
    side.failures = 0;
    // What its holder has seen end does not come to life again because the answer was processed before the timer.
    lose_ended(one, side.mode);
    for (auto& h : one.holds) {
      if (!side.covers(*h)) continue;
      instant const until = h->renewed(side.sent, renewed_trust(shared_.settings));
      if (until <= h->deadline) continue;
      h->deadline = until;
      tenure_.renewed(one, until);
      h->watchdog = until < h->renew_until;
      if (h->link) h->link->show(until);
    }
    ++shared_.counters.renewals;
    side.looks = false;
  } else if (answer.what == outcome::type::absent) {
    if (side.concerns_any()) {
      lose_side(one, side.mode, errc::lease_lost);
      repair(one, side.mode);
    }
    side.looks = false;
  } else {
    note_at_risk(side, error_of(answer), answer.text);
  }
  after_renewal(side);
}

void name_machine::renewal_unanswered(renewal& side, error_code const& why) {
  side.under_way = false;
  note_at_risk(side, why, "a renewal was not answered");
  after_renewal(side);
}

void name_machine::note_at_risk(renewal& side, error_code const& why, std::string_view text) {
  auto const& holds = side.of->holds;
  auto const first = std::find_if(holds.begin(), holds.end(), [&](auto const& one) { return side.concerns(*one); });
  if (first == holds.end() || side.failures++ > 0) return;
  note(event_type::at_risk, side.of->owner, why, text, {}, (*first)->context);
}

void name_machine::after_renewal(renewal& side) {
  owner_state& one = *side.of;
  if (one.live(side.mode) > 0) at_->renewals.again(side);
  advance(one);
  waiters_->wake();
  tidy(one);
  tidy_served();
}

}  // namespace latchkey::detail
