#include <machine/orphans.hpp>

#include <machine/name_machine.hpp>
#include <machine/takeover.hpp>
#include <wire/server_error.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace latchkey::detail {

bool orphans::answered_late(std::uint32_t serial) {
  auto const found = std::find_if(all_.begin(), all_.end(), [&](orphan const& gone) { return gone.serial == serial; });
  return found != all_.end() && !std::exchange(found->answered, true);
}

void orphans::give_up(remains&& left, error_code const& why, std::string_view text) {
  orphan gone{std::move(left.id), std::move(left.address), std::move(left.run_id), left.serial};
  for (auto& call : left.calls) unanswered(call, gone, why, text);
  for (auto const& call : left.calls) shared_.counters.waits_failed += call.what == sent_call::type::wait;
  bool const sent_anything = std::any_of(left.calls.begin(), left.calls.end(), [](sent_call const& call) {
    return call.what == sent_call::type::script ||
           (call.what == sent_call::type::plain && call.asked == ask::force_unlock) ||
           call.what == sent_call::type::renewals;
  });
  if (sent_anything) add(std::move(gone));
}

void orphans::let_go(home const& at) {
  for (owner_state* state : in_doubt_) takeover::may_run_later(*state, at);
  resolve();
}

void orphans::bar() {
  for (orphan& gone : all_) {
    for (auto const& key : gone.owners) shared_.barred.add(key);
    gone.barred.insert(gone.barred.end(), gone.owners.begin(), gone.owners.end());
    gone.owners.clear();
  }
}

bool orphans::barring() const {
  return std::any_of(all_.begin(), all_.end(), [](orphan const& gone) { return !gone.barred.empty(); });
}

void orphans::unbar(std::string_view address) {
  if (barring() && !address.empty()) shared_.note(event_type::unfenced, {}, 0, errc::timeout, address);
  for (orphan& gone : all_) unbar(gone);
}

void orphans::unbar(orphan& gone) {
  if (gone.barred.empty()) return;
  for (auto const& key : gone.barred) shared_.barred.remove(key);
  gone.barred.clear();
  shared_.out->turn = true;
}

// Its bytes may still run on the server.
void orphans::unanswered(sent_call& call, orphan& from, error_code const& why, std::string_view text) {
  for (owner_state* state : call.owners) {
    if (shared_.may_move) from.owners.push_back(barred_owners::key_of(*state));
    if (shared_.may_move && state->ask_->partner) from.owners.push_back(barred_owners::key_of(*state->ask_->partner));
    in_doubt_.push_back(state);
    state->of.unanswered(*state, text);
  }
  for (renewal* renewal : call.renewals) renewal->of->of.renewal_unanswered(*renewal, why);  // asked anew next time
  if (call.what != sent_call::type::plain || !call.plain) return;
  operation& plain = *call.plain;
  if (plain.what == operation::type::force_unlock) {  // never sent again: it might remove a successor
    from.forced.push_back(&plain);
    return;
  }
  plain_.unanswered(plain);
}

void orphans::add(orphan&& gone) {
  ++shared_.counters.orphans;
  if (refused_ || gone.id.empty()) return killed(gone);  // as good as it gets: said by an event in the handshake
  all_.push_back(std::move(gone));
  shared_.out->turn = true;
}

void orphans::connected(std::string_view id, std::string_view run_id) {
  forget_outlived(id, run_id);
  if (refused_ || all_.empty()) resolve();
}

// Their KILLs have no answer.
void orphans::disconnected() {
  for (auto& gone : all_) gone.asked = false;
}

void orphans::refuse(std::string_view text) {
  if (!refused_) shared_.note(event_type::kill_refused, {}, 0, errc::server_error, text);
  refused_ = true;
  shared_.counters.fenced = false;
}

void orphans::allow() {
  refused_ = false;
  shared_.counters.fenced = true;
}

// KILL goes alone; what is to be resolved waits for its answer.
void orphans::send() {
  if (refused_) {
    auto all = std::exchange(all_, {});
    for (auto& gone : all) killed(gone);
    return resolve();
  }
  if (shared_.now < again_at_) return shared_.timers.set_lazily(timer_, again_at_);
  for (auto& gone : all_) {
    if (gone.asked) continue;
    gone.asked = true;
    user_.kill(gone);
  }
}

// 1: it was there, 0: it was gone already. Both mean that nothing of it runs any more; anything else means nothing.
void orphans::answered(std::uint32_t serial, reply const& answer) {
  auto const gone = std::find_if(all_.begin(), all_.end(), [&](orphan const& one) { return one.serial == serial; });
  if (gone == all_.end()) return;
  if (!answer.is_integer()) return not_killed(*gone, answer);
  failures_ = 0;
  ++shared_.counters.kills;
  orphan done = std::move(*gone);
  all_.erase(gone);
  killed(done);
  if (all_.empty() || refused_) resolve();
}

// What waits for it has failed like anything else that such a server refuses.
void orphans::not_killed(orphan& gone, reply const& answer) {
  gone.asked = false;
  auto const why = classify(answer.text);
  if (why.code != errc::timeout && answer.text.starts_with("NOPERM")) {
    refuse(answer.text);
    shared_.out->turn = true;
    return;
  }
  again_at_ = after(shared_.now, shared_.pause(++failures_, shared_.settings.retry_delay));
  shared_.timers.set_lazily(timer_, again_at_);
  auto const forced = gone.forced;
  for (operation* call : forced) {
    call->text = answer.text;
    if (++call->attempts > static_cast<unsigned>(shared_.settings.retry_attempts))
      plain_.expire(*call, errc::connection_lost);
  }
  for (owner_state* state : std::vector<owner_state*>(in_doubt_)) state->of.waits_on(*state, why, answer.text);
}

// Another process answers: the one that had read the bytes is gone, and they with it. Its KILL might meet a stranger,
// since ids start anew. Where nobody says which process it is, they only rise as long as it is the same.
bool orphans::outlived(orphan const& gone, std::string_view id, std::string_view run_id) {
  if (!gone.run_id.empty() && !run_id.empty()) return gone.run_id != run_id;
  if (!has_no_address(gone.address)) return false;
  auto const number = [](std::string_view text) {
    std::uint64_t made = 0;
    std::from_chars(text.data(), text.data() + text.size(), made);
    return made;
  };
  return number(id) <= number(gone.id);
}

void orphans::forgive() {
  auto all = std::exchange(all_, {});
  for (auto& gone : all) killed(gone);
  resolve();
}

void orphans::take(orphans& from, bool all, std::string_view id, std::string_view run_id) {
  auto const first = std::stable_partition(from.all_.begin(), from.all_.end(), [&](orphan const& gone) {
    return !all && (run_id.empty() || gone.run_id != run_id);
  });
  if (first == from.all_.end()) return;
  for (auto each = first; each != from.all_.end(); ++each) {
    each->asked = false;
    all_.push_back(std::move(*each));
  }
  from.all_.erase(first, from.all_.end());
  if (!id.empty()) forget_outlived(id, run_id);
}

void orphans::forget_outlived(std::string_view id, std::string_view run_id) {
  auto const first =
      std::stable_partition(all_.begin(), all_.end(), [&](orphan const& gone) { return !outlived(gone, id, run_id); });
  std::vector<orphan> over(std::make_move_iterator(first), std::make_move_iterator(all_.end()));
  all_.erase(first, all_.end());
  for (auto& gone : over) killed(gone);
}

// Nothing of it runs any more.
void orphans::killed(orphan& gone) {
  unbar(gone);
  for (operation* call : std::vector<operation*>(gone.forced)) plain_.expire(*call, errc::connection_lost);
}

void orphans::resolve() {
  auto const waiting = std::exchange(in_doubt_, {});
  for (owner_state* state : waiting) state->of.resolve(*state);
  if (!waiting.empty()) shared_.out->turn = true;
}

void orphans::forget(operation& call) {
  for (auto& gone : all_) std::erase(gone.forced, &call);
}

std::vector<operation*> orphans::forced() const {
  std::vector<operation*> made;
  for (auto const& gone : all_) made.insert(made.end(), gone.forced.begin(), gone.forced.end());
  return made;
}

}  // namespace latchkey::detail
