#include <base/server_words.hpp>
#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/request_writer.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

void request_writer::answered(link& on, sent_call& call, reply& answer) {
  if (call.what == sent_call::type::wait) {
    on.waits = false;
    return synced(on, answer);
  }
  // A force-unlock ran behind what it removes: it is heard of behind it, too.
  bool const behind = call.what == sent_call::type::plain && call.asked == ask::force_unlock && !on.unsynced.empty();
  if (behind || needs_replicas(call, answer)) {
    on.unsynced.push_back({std::move(call), std::move(answer)});
    shared_.out->turn = true;
  } else if (call.what == sent_call::type::plain) {
    on_plain(call, answer);
  } else {
    on_script(call, answer);
  }
}

// --- replicas ---

namespace {

// Other errors pass: a WAIT is interrupted, or refused, where a master becomes a replica.
bool refused_for_good(reply const& to_wait) {
  return to_wait.is_error() &&
         (first_word(to_wait.text) == "NOPERM" || to_wait.text.starts_with("ERR unknown command"));
}

}  // namespace

// How many have to have it before anybody is told.
std::size_t request_writer::replicas_needed() {
  auto const& settings = shared_.settings;
  if (!shared_.asks_replicas()) return 0;
  if (settings.min_synced_replicas > 0) return static_cast<std::size_t>(settings.min_synced_replicas);
  auto const& known = at_.replicas;
  // Of a node that an ASK has named nobody has said yet how many it has, but itself.
  std::size_t const there =
      settings.min_synced_replicas < 0 ? known.all(shared_.now) : std::min<std::size_t>(known.connected(), 1);
  if (there > 0) return there;
  if (!std::exchange(at_.replicas_missed, true)) shared_.note(event_type::unsynced, {}, 0, errc::not_synced);
  return 0;
}

item request_writer::item_of(sent_call const& call, std::size_t i) {
  request const* const was = i < call.owners.size() ? &*call.owners[i]->ask_ : nullptr;
  item said{.what = call.asked, .mode = was ? was->mode : call.renewals[i]->mode, .bundled = call.bundled};
  if (!was) return said;
  said.target = was->target;
  said.lease = was->lease;
  said.command = was->command;
  said.repeated = was->repeated;
  return said;
}

// Has anything been granted or made longer?
bool request_writer::needs_replicas(sent_call const& call, reply const& answer) {
  if (!shared_.asks_replicas() || call.what == sent_call::type::plain || !answer.is_array()) return false;
  std::size_t const asked = call.owners.size() + call.renewals.size();
  if (answer.elements.size() != asked || call.asked == ask::release) return false;
  for (std::size_t i = 0; i < asked; ++i) {
    item const said = item_of(call, i);
    auto const found = call.which->read(call.asked, said, answer.elements[i]);
    using type = outcome::type;
    bool const moved = found.what == type::done && call.which->rules_of(said.command).shortens;
    if (moved || found.what == type::granted || found.grant == type::granted || found.what == type::extended)
      return replicas_needed() > 0;
  }
  return false;
}

void request_writer::wait_words(link& on) {
  on.replicas_asked = replicas_needed();
  command_.clear();
  command_.add(std::string_view("WAIT"));
  command_.add(static_cast<std::int64_t>(on.replicas_asked));
  command_.add(std::max<std::int64_t>(shared_.settings.replicas_sync_timeout.count(), 1));
}

// One WAIT for all that was answered meanwhile. What is behind it waits, too: there is no second one.
void request_writer::send_wait(link& to) {
  if (to.unsynced.empty() || to.waits) return;
  wait_words(to);
  to.waits = true;
  to.write(shared_, command_, {.what = sent_call::type::wait});
  to.unanswered.back().sent = after(shared_.now, shared_.settings.replicas_sync_timeout);
}

void request_writer::synced(link& on, reply const& said) {
  bool const met = said.is_integer() && said.integer >= static_cast<std::int64_t>(on.replicas_asked);
  ++(met ? shared_.counters.waits_met : shared_.counters.waits_failed);
  if (!met) user_.shaken();
  while (!on.unsynced.empty()) {
    unsynced_call kept = std::move(on.unsynced.front());
    on.unsynced.pop_front();
    if (kept.call.what == sent_call::type::plain)
      on_plain(kept.call, kept.answer);
    else
      on_script(kept.call, kept.answer, met, refused_for_good(said) ? said.text : std::string_view());
  }
}

namespace {

// Keys are on their way: it concerns nothing else of their server.
bool keys_move(std::string_view text) { return first_word(text) == "TRYAGAIN" || names_key_elsewhere(text); }

bool awaits_replicas(outcome const& found) {
  using type = outcome::type;
  return found.what == type::granted || found.what == type::extended || found.what == type::done;
}

}  // namespace

void request_writer::on_script(sent_call& call, reply const& answer, bool met, std::string_view why_not) {
  if (answer.is_error()) {
    auto const why = classify(answer.text);
    if (why.no_script && !call.whole) {
      unknown_.insert(call.text);
      return send_again(call);
    }
    if (goes_apart(call, answer.text) || goes_elsewhere(call, answer.text)) return;
    if (why.executed == server_error::ran::no && why.transient) return nothing_ran(call, why, answer.text);
  } else {
    recovered(sickness::all);
  }
  bool turned_away = false, goes_again = false;
  shared_.answers = &at_;
  std::size_t const asked = call.owners.size() + call.renewals.size();
  bool const whole = answer.is_array() && answer.elements.size() == asked;
  for (std::size_t i = 0; i < asked; ++i) {
    outcome found;
    owner_state* state = i < call.owners.size() ? call.owners[i] : nullptr;
    renewal* renewal = state ? nullptr : call.renewals[i - call.owners.size()];
    if (whole) found = call.which->read(call.asked, item_of(call, i), answer.elements[i]);
    if (renewal) renewal->sent_on = {};
    found.unsynced = !met;
    if (answer.is_error()) {
      bool const refused = classify(answer.text).executed == server_error::ran::no;
      found.what = found.grant = refused ? outcome::type::refused : outcome::type::malformed;
      found.text = answer.text;
    }
    auto const why = found.text.empty() ? server_error{} : classify(found.text);
    if (!met && awaits_replicas(found)) found.text = why_not;
    turned_away = turned_away || why.reconnect;
    bool const moves = at_.in_cluster && keys_move(found.text);
    if (why.transient && !moves) fell_ill(sickness::writes, why, found.text);
    if (found.what == outcome::type::granted || found.grant == outcome::type::granted) recovered(sickness::writes);
    // A release is never given up for trouble that passes: nothing else may end what it ends.
    bool const gives_back = state && (state->ask_->what == ask::release || state->ask_->what == ask::hand_off);
    bool const again = state && (moves || gives_back) && found.what == outcome::type::refused && why.transient &&
                       why.executed == server_error::ran::no && name_machine::goes_again(*state, shared_.now);
    goes_again = goes_again || (again && !moves);
    if (state && found.what == outcome::type::released && state->of.at_ != &at_)
      state->of.at_->requests.tell(state->of.which(), state->of.name());
    if (again && moves) come_again(state->ask_.pending().sent_on, state->of.at_->requests);
    if (again)
      state->of.not_run(*state, &why, found.text);
    else if (state)
      state->of.answered(*state, found);
    else if (!met && found.what == outcome::type::extended)
      renewal->of->of.renewal_unanswered(*renewal, errc::not_synced);
    else
      renewal->of->of.renewed(*renewal, found);
  }
  shared_.answers = nullptr;
  if (turned_away || goes_again) {  // by a server that may say so again at once
    turned_away_ = turned_away;
    pause();
  } else if (!answer.is_error()) {
    pauses_ = 0;
    at_.refusal.clear();
  }
}

// An event for each state, not for each request that meets it. Whoever gives up meanwhile hears the words.
void request_writer::fell_ill(sickness::part what, server_error const& why, std::string_view text) {
  at_.away.may_pass(text);
  auto const word = first_word(text);
  if (sick_.of[what] == word) return;
  sick_.of[what] = word;
  shared_.note(event_type::warning, {}, 0, why.code, text);
}

void request_writer::recovered(sickness::part what) {
  if (sick_.of[what].empty()) return;
  sick_.of[what].clear();
  at_.away.over();
}

// NOSCRIPT: nothing ran, the same goes once more with the script's text.
void request_writer::send_again(sent_call& call) {
  for (owner_state* state : call.owners) state->of.not_run(*state, nullptr, {});
  for (renewal* renewal : call.renewals) renewal->of->of.at_->requests.add(*renewal);
  if (call.plain) plain_.again(*call.plain);
}

// Nothing ran, and another server is to be asked: by its item alone, if it does not have the slot yet. Whom nobody
// knows yet is learnt of meanwhile. Servers that send each other's names to each other are not asked in a loop.
bool request_writer::goes_elsewhere(sent_call& call, std::string_view text) {
  auto const to = at_.in_cluster ? read_redirection(text) : std::nullopt;
  if (!to) return false;
  home* const there = user_.redirected(*to);
  bool const once = to->once && there;
  auto const send_on = [&](detour& of, outbox& at) {
    of.ask(once);
    there ? of.next() : of.tire();
    at.rest(of);
  };
  for (owner_state* state : call.owners) {
    if (once) there->passing.add(state->of.name());
    send_on(state->ask_.pending().sent_on, (once ? there : state->of.at_)->requests);
    state->of.not_run(*state, nullptr, {}, once ? there : nullptr);
  }
  for (renewal* renewal : call.renewals) {
    if (once) there->passing.add(renewal->of->of.name());
    outbox& at = (once ? there : renewal->of->of.at_)->requests;
    send_on(renewal->sent_on, at);
    at.add(*renewal);
  }
  if (!call.plain) return true;
  call.plain->unseen = false;
  outbox& at = once ? there->requests : plain_.requests_of(*call.plain);
  send_on(call.plain->sent_on, at);
  at.add(*call.plain);
  return true;
}

namespace {

bool of_several_names(sent_call const& call) {
  auto const other_name = [](owner_state const* state, owner_state const* next) {
    return state->of.name() != next->of.name();
  };
  auto const renews_other_name = [&](renewal const* renewed, renewal const* next) {
    return other_name(renewed->of, next->of);
  };
  return std::adjacent_find(call.owners.begin(), call.owners.end(), other_name) != call.owners.end() ||
         std::adjacent_find(call.renewals.begin(), call.renewals.end(), renews_other_name) != call.renewals.end();
}

}  // namespace

// Names of a slot that moves, of which some are at one server and some perhaps at another. Each by itself may be asked
// about. Before 7.0.3 Redis says ASK of all where one is missing: an item that is there must not be asked for
// elsewhere.
bool request_writer::goes_apart(sent_call& call, std::string_view text) {
  if (!at_.in_cluster || !of_several_names(call)) return false;
  if (first_word(text) != "TRYAGAIN" && first_word(text) != "ASK") return false;
  for (owner_state* state : call.owners) state->ask_.pending().sent_on.next();
  for (renewal* renewal : call.renewals) renewal->sent_on.next();
  send_again(call);
  return true;
}

void request_writer::come_again(detour& of, outbox& at) {
  of.tire();
  at.rest(of);
}

// Some keys of one name are at one server and some at another.
void request_writer::come_again(sent_call& call) {
  for (owner_state* state : call.owners) come_again(state->ask_.pending().sent_on, state->of.at_->requests);
  if (call.plain) come_again(call.plain->sent_on, plain_.requests_of(*call.plain));
}

void request_writer::nothing_ran(sent_call& call, server_error const& why, std::string_view text) {
  if (at_.in_cluster && keys_move(text)) {
    come_again(call);
  } else {
    fell_ill(sickness::all, why, text);
    pause();
    at_.refusal = text;
  }
  if (first_word(text) == "CLUSTERDOWN") user_.shaken();
  turned_away_ = turned_away_ || why.reconnect;
  outcome refused;
  refused.what = refused.grant = outcome::type::refused;
  refused.text = text;
  for (owner_state* state : call.owners)
    if (name_machine::goes_again(*state, shared_.now))
      state->of.not_run(*state, &why, text);
    else
      state->of.answered(*state, refused);
  for (renewal* renewal : call.renewals) renewal->of->of.renewed(*renewal, refused);
  if (first_word(text) == "LOADING") at_.renewals.want_all();  // it has been started anew
  if (call.plain) plain_.not_run(*call.plain, why, text);
}

// Requests wait, longer each time.
void request_writer::pause() {
  paused_until_ = after(shared_.now, shared_.pause(++pauses_, shared_.settings.retry_delay));
  wake_after_pause();
}

void request_writer::on_plain(sent_call& call, reply const& answer) {
  if (answer.is_error()) {
    auto const why = classify(answer.text);
    if (why.no_script && call.text && !call.whole) {
      unknown_.insert(call.text);
      if (call.plain) plain_.again(*call.plain);
      return;
    }
    if (goes_elsewhere(call, answer.text)) return;
    bool const only_read = call.plain && call.plain->what == operation::type::query && names_key_elsewhere(answer.text);
    bool const unchanged = why.executed == server_error::ran::no || only_read;
    if (unchanged && why.transient) return nothing_ran(call, why, answer.text);
  } else {
    recovered(sickness::all);
    at_.refusal.clear();
  }
  if (call.plain) plain_.answered(call, answer, at_.requests);
}

}  // namespace latchkey::detail
