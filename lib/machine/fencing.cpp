#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/session.hpp>

#include <algorithm>

namespace latchkey::detail {

// One call that its discarded connection leaves behind. Its bytes may still run on the server.
void session::unanswered(sent_call& call, discarded& from) {
  for (record* one : call.records) {
    unsettled_.push_back(one);
    one->of.unanswered(*one);
  }
  for (renewal* side : call.renewals) {  // asked anew next time, never sent again
    outcome unknown;
    unknown.what = outcome::type::refused;
    side->of->of.renewed(*side, unknown);
  }
  if (call.what != sent_call::type::plain || !call.plain) return;
  operation& plain = *call.plain;
  if (plain.what == operation::type::force_unlock) {  // never sent again: it might remove a successor
    from.forced.push_back(&plain);
    return;
  }
  if (++plain.attempts > static_cast<unsigned>(shared_.settings.retry_attempts))
    return expire_plain(plain, errc::connection_lost);
  shared_.requests->add(plain);
}

void session::remember(link& one, discarded&& what) {
  (void)one;
  if (kill_refused_ || what.id.empty()) {  // cannot be fenced: said by an event in the handshake
    for (operation* call : std::exchange(what.forced, {})) expire_plain(*call, errc::connection_lost);
    return;
  }
  discarded_.push_back(std::move(what));
  shared_.out->turn = true;
}

// KILL goes alone; what is to be settled waits for its answer. ADDR protects a stranger if ids started anew.
void session::send_kills() {
  if (kill_refused_) {
    auto const gone = std::exchange(discarded_, {});
    for (auto const& one : gone)
      for (operation* call : std::vector<operation*>(one.forced)) expire_plain(*call, errc::connection_lost);
    return settle_if_fenced();
  }
  if (shared_.now < kill_at_) return shared_.timers.set_lazily(timer_, kill_at_);
  for (auto& gone : discarded_) {
    if (gone.asked) continue;
    gone.asked = true;
    command_.clear();
    for (std::string_view word : {std::string_view("CLIENT"), std::string_view("KILL"), std::string_view("ID"),
                                  std::string_view(gone.id), std::string_view("ADDR"), std::string_view(gone.address)})
      command_.add(word);
    write_words(link_of(role::shared), {.what = sent_call::type::kill, .serial = gone.serial});
  }
}

// 1: it was there, 0: it was gone already. Both mean that nothing of it runs any more; anything else means nothing.
void session::on_kill(sent_call const& call, reply const& answer) {
  auto const gone = std::find_if(discarded_.begin(), discarded_.end(),
                                 [&](discarded const& one) { return one.serial == call.serial; });
  if (gone == discarded_.end()) return;
  if (!answer.is_integer()) {
    gone->asked = false;
    auto const why = classify(answer.text);
    if (why.code != errc::timeout && answer.text.starts_with("NOPERM")) {
      refuse_kill(answer.text);
      shared_.out->turn = true;
      return;
    }
    kill_at_ = after(shared_.now, shared_.pause(++kill_failures_, shared_.settings.retry_delay));
    return shared_.timers.set_lazily(timer_, kill_at_);
  }
  kill_failures_ = 0;
  ++shared_.counters.kills;
  auto const forced = std::exchange(gone->forced, {});
  discarded_.erase(gone);
  for (operation* one : forced) expire_plain(*one, errc::connection_lost);
  settle_if_fenced();
}

void session::settle_if_fenced() {
  if (!discarded_.empty() && !kill_refused_) return;
  auto const waiting = std::exchange(unsettled_, {});
  for (record* one : waiting) one->of.settle(*one);
  if (!waiting.empty()) shared_.out->turn = true;
}

}  // namespace latchkey::detail
