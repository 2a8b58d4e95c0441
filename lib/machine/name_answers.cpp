#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

errc name_machine::error_of(outcome const& answer) {
  switch (answer.what) {
    case outcome::type::refused: return classify(answer.text).code;
    case outcome::type::already_held: return errc::already_held;
    case outcome::type::would_deadlock: return errc::would_deadlock;
    default: return errc::server_error;
  }
}

std::string_view name_machine::words_of(outcome const& answer) {
  return answer.text.empty() ? std::string_view("an answer of unexpected form") : std::string_view(answer.text);
}

void name_machine::answered(record& one, outcome const& answer) {
  record* const partner = one.ask_.partner;
  switch (one.ask_.what) {
    case ask::acquire: on_acquire_answer(one, answer); break;
    case ask::release: on_release_answer(one, answer); break;
    case ask::hand_off: on_hand_off_answer(one, answer); break;
    case ask::extend: on_extend_answer(one, answer); break;
    case ask::leave: on_leave_answer(one); break;
    case ask::command: on_command_answer(one, answer); break;
    default: return;
  }
  advance(one);
  if (partner) advance(*partner);
  wake_parked();
  if (partner) tidy(*partner);
  tidy(one);
  tidy_served();
}

void name_machine::on_acquire_answer(record& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  switch (answer.what) {
    case outcome::type::granted: granted(one, was, was.sent, answer); return repair_sides(one, was.fix);
    case outcome::type::gone: {  // the outer holds are not on the server
      lose_side(one, was.mode, errc::lease_lost);
      repair_sides(one, was.fix);
      if (was.abandoned || !was.call) return;
      if (one.ask_.under_way()) {
        one.behind.push_front(*was.call);
        was.call->where = operation::place::behind_owner;
        return;
      }
      return was.call->queued ? void() : acquire(one, *was.call);
    }
    case outcome::type::busy:
      repair_sides(one, was.fix);
      if (was.call && !was.abandoned) busy(one, was, answer.hint);
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
      return fail_acquire(one, was, error_of(answer), words_of(answer));
  }
}

void name_machine::on_release_answer(record& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  conclude_release(one, was, answer);
  unsigned const own = 1u << was.mode;
  unsigned more_ended = was.fix;
  if (answer.what == outcome::type::still_held && one.live(was.mode) == 0) more_ended |= own;
  if (answer.what == outcome::type::absent) more_ended &= ~own;
  repair_sides(one, more_ended);
  // Nobody knows what an answer of unexpected form stands for: once more, and then the lease ends it.
  if (answer.what == outcome::type::malformed && !was.give_back) repair(one, was.mode);
  if (answer.not_published && head_idle()) try_head();
  if (answer.what == outcome::type::released && !kind_.rules().listens && head_idle()) {
    // Nobody is told. After a short pause, in which others may take it, the head looks.
    queue_.front().polls = 0;
    sleep_until_hint(0);
  }
  // It had ended before, perhaps earlier than the head was told, and nobody has published that.
  if (answer.what == outcome::type::absent && one.live() == 0) new_head();
}

// What the caller of a release is told, by what the server found.
void name_machine::conclude_release(record& one, request const& was, outcome const& answer) {
  error_code error;
  release_result found = release_result::released;
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
    default: error = error_of(answer); note(event_type::warning, one.owner, error, words_of(answer));
  }
  if (answer.not_published) note(event_type::publish_refused, one.owner);
  if (!was.give_back && !error) note(event_type::released, one.owner, {}, {}, shared_.now - was.began);
  if (!was.call) return;
  was.call->released = found;
  complete(*was.call, error, answer.text);
}

void name_machine::on_hand_off_answer(record& one, outcome const& answer) {
  record& to = *one.ask_.partner;
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
      note(event_type::handed_off, to.owner);
      granted(to, next, was.sent, answer);
      break;
    case outcome::type::busy:
      if (next.call && !next.abandoned) busy(to, next, answer.hint);
      break;
    default: {
      outcome refused = answer;
      refused.what = answer.grant;
      if (answer.grant == outcome::type::malformed || next.repeated) repair(to, next.mode);
      fail_acquire(to, next, error_of(refused), words_of(refused));
    }
  }
  repair_sides(to, next.fix);
}

void name_machine::on_extend_answer(record& one, outcome const& answer) {
  request const was = one.ask_;
  finish(one);
  hold* extended = one.find(was.extends);
  bool const live = lasts(extended);
  switch (answer.what) {
    case outcome::type::extended: {
      instant const until = after(was.sent, was.wanted);
      if (live && until > extended->deadline) {
        extended->deadline = until;
        shared_.timers.set_lazily(extended->expiry, until);
        if (extended->link) extended->link->show(until);
      }
      if (was.call) was.call->yes = live && until > shared_.now;
      if (was.call) complete(*was.call);
      break;
    }
    case outcome::type::absent:
      lose_side(one, was.mode, errc::lease_lost);
      if (was.call) complete(*was.call);
      break;
    default:
      if (was.call) complete(*was.call, error_of(answer), words_of(answer));
  }
  repair_sides(one, was.fix);
}

void name_machine::renewed(renewal& side, outcome const& answer) {
  record& one = *side.of;
  side.under_way = false;
  auto const covered = [&](hold const& h) {
    return h.mode == side.mode && h.watchdog && !h.lost && h.generation <= side.newest;
  };
  bool any = false;
  for (auto& h : one.holds) any = any || covered(*h);
  if (answer.what == outcome::type::extended) {
    side.failures = 0;
    instant const until = after(side.sent, shared_.settings.lock_watchdog_timeout);
    // What its holder has seen end does not come to life again because the answer was processed before the timer.
    lose_ended(one, side.mode);
    for (auto& h : one.holds) {
      if (!covered(*h) || until <= h->deadline) continue;
      h->deadline = until;
      if (h->link) h->link->show(until);
    }
    ++shared_.counters.renewals;
  } else if (answer.what == outcome::type::absent) {
    if (any) {
      lose_side(one, side.mode, errc::lease_lost);
      repair(one, side.mode);
    }
  } else if (any) {
    if (side.failures++ == 0) note(event_type::at_risk, one.owner, error_of(answer), answer.text);
  }
  if (one.live(side.mode) > 0) shared_.renewals->again(side);
  advance(one);
  wake_parked();
  tidy(one);
  tidy_served();
}

}  // namespace latchkey::detail
