#include <base/server_words.hpp>
#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/session.hpp>
#include <machine/subscriptions.hpp>
#include <machine/watchdog.hpp>

namespace latchkey::detail {

void session::received(std::uint32_t serial, std::string_view bytes) {
  link* one = find(serial);
  if (!one) return;
  one->heard = shared_.now;
  shared_.counters.bytes_received += bytes.size();
  one->reader.feed(bytes);
  for (reply answer;;) {
    auto const got = one->reader.next(answer);
    if (got == reply_reader::result::more) break;
    if (got == reply_reader::result::malformed) {
      std::string const problem = one->reader.problem();
      if (one->at == link::state::up) return discard(*one, errc::protocol_error, problem);
      return failed(*one, errc::protocol_error, problem, false);
    }
    on_reply(*one, answer);
    if (one->serial != serial || one->at == link::state::down) return;  // it was given up for this answer
  }
  if (!shared_.requests->empty()) shared_.out->turn = true;
}

void session::on_reply(link& one, reply& answer) {
  if (one.of == role::messages && one.at == link::state::up) return on_message_reply(one, answer);
  if (one.unanswered.empty()) {
    // Before it closes a connection that it does not want, the server says why.
    auto const why = answer.is_error() ? classify(answer.text) : server_error{errc::protocol_error};
    return one.at == link::state::up ? discard(one, why.code, answer.text) : failed(one, why.code, answer.text, true);
  }
  sent_call call = std::move(one.unanswered.front());
  one.unanswered.pop_front();
  using asked = sent_call::type;
  bool const real = call.what != asked::hello && call.what != asked::check && call.what != asked::kill;
  one.of_use = one.of_use || (real && !answer.is_error());
  switch (call.what) {
    case sent_call::type::hello: return on_hello(one, call, answer);
    case sent_call::type::check: return on_check(call, answer);
    case sent_call::type::kill: return orphans_.answered(call.serial, answer);
    case sent_call::type::ping: one.polled = false; return;
    case sent_call::type::plain: on_plain(call, answer); break;
    default: on_script(call, answer);
  }
  if (std::exchange(reconnect_, false)) discard(one, errc::read_only, std::string(shared_.trouble));
}

void session::on_message_reply(link& one, reply& answer) {
  if (answer.is_error()) {
    using asked = sent_call::type;
    asked const what = one.unanswered.empty() ? asked::subscribe : one.unanswered.front().what;
    bool const pinged = what == asked::ping;
    if (pinged) one.polled = false;
    if (what == asked::may_subscribe) {
      one.unanswered.pop_front();
      return on_may_subscribe(answer.text);
    }
    // A server that is busy for a while has done neither a SUBSCRIBE nor an UNSUBSCRIBE: the next connection asks for
    // what is wanted by then. One that will not UNSUBSCRIBE would go on to send what nobody wants.
    auto const why = classify(answer.text);
    bool const busy = !pinged && why.executed == server_error::ran::no && why.transient;
    if (busy || what == asked::unsubscribe) return discard(one, why.code, answer.text);
    if (!one.unanswered.empty()) one.unanswered.pop_front();
    return what == asked::subscribe ? shared_.channels->refused_by_server(answer.text) : void();
  }
  one.of_use = true;
  if (answer.kind == reply::type::status) {  // PONG while nothing is subscribed
    one.polled = false;
    if (!one.unanswered.empty()) one.unanswered.pop_front();
    return;
  }
  if (!answer.is_array() || answer.elements.size() < 2) return discard(one, errc::protocol_error, "not a message");
  auto const& words = answer.elements;
  std::string_view const what = words[0].text;
  if (what == "message" && words.size() == 3) return shared_.channels->message(words[1].text, words[2].text);
  if (what != "subscribe" && what != "unsubscribe" && what != "pong") return;
  bool const ours = !one.unanswered.empty() && one.unanswered.front().what == sent_call::type::may_subscribe;
  if (!one.unanswered.empty()) one.unanswered.pop_front();
  if (ours) return on_may_subscribe({});
  if (what == "pong") one.polled = false;
  if (what == "subscribe") shared_.channels->confirmed(words[1].text);
}

void session::on_script(sent_call& call, reply const& answer) {
  if (answer.is_error()) {
    auto const why = classify(answer.text);
    if (why.no_script && !call.whole) {
      unknown_.insert(call.text);
      return send_again(call);
    }
    if (why.executed == server_error::ran::no && why.transient) return nothing_ran(call, why, answer.text);
  } else {
    recovered(sickness::all);
  }
  bool turned_away = false, goes_again = false;
  std::size_t const asked = call.owners.size() + call.renewals.size();
  bool const whole = answer.is_array() && answer.elements.size() == asked;
  for (std::size_t i = 0; i < asked; ++i) {
    outcome found;
    owner_state* one = i < call.owners.size() ? call.owners[i] : nullptr;
    renewal* side = one ? nullptr : call.renewals[i - call.owners.size()];
    request const* was = one ? &one->ask_ : nullptr;
    item said{.what = call.asked, .mode = was ? was->mode : side->mode, .bundled = call.bundled};
    if (was) {
      said.target = was->target;
      said.lease = was->lease;
      said.command = was->command;
      said.repeated = was->repeated;
    }
    if (whole) found = call.which->read(call.asked, said, answer.elements[i]);
    if (answer.is_error()) {
      bool const refused = classify(answer.text).executed == server_error::ran::no;
      found.what = found.grant = refused ? outcome::type::refused : outcome::type::malformed;
      found.text = answer.text;
    }
    auto const why = found.text.empty() ? server_error{} : classify(found.text);
    turned_away = turned_away || why.reconnect;
    if (why.transient) fell_ill(sickness::writes, why, found.text);
    if (found.what == outcome::type::granted || found.grant == outcome::type::granted) recovered(sickness::writes);
    // A release is never given up for trouble that passes: nothing else may end what it ends.
    bool const again = one && was->what == ask::release && found.what == outcome::type::refused && why.transient &&
                       why.executed == server_error::ran::no && name_machine::goes_again(*one, shared_.now);
    goes_again = goes_again || again;
    if (again)
      one->of.not_run(*one, &why, found.text);
    else if (one)
      one->of.answered(*one, found);
    else
      side->of->of.renewed(*side, found);
  }
  if (turned_away || goes_again) {  // by a server that may say so again at once
    reconnect_ = turned_away;
    pause(++pauses_);
  } else if (!answer.is_error()) {
    pauses_ = 0;
    shared_.refusal.clear();
  }
}

// An event for each state, not for each request that meets it. Whoever gives up meanwhile hears the words.
void session::fell_ill(sickness::part what, server_error const& why, std::string_view text) {
  shared_.trouble = text;
  auto const word = first_word(text);
  if (sick_.of[what] == word) return;
  sick_.of[what] = word;
  shared_.note(event_type::warning, {}, 0, why.code, text);
}

void session::recovered(sickness::part what) {
  if (sick_.of[what].empty()) return;
  sick_.of[what].clear();
  shared_.trouble.clear();
}

// NOSCRIPT: nothing ran, the same goes once more with the script's text.
void session::send_again(sent_call& call) {
  for (owner_state* one : call.owners) one->of.not_run(*one, nullptr, {});
  for (renewal* side : call.renewals) shared_.requests->add(*side);
  if (call.plain) shared_.requests->add(*call.plain);
}

void session::nothing_ran(sent_call& call, server_error const& why, std::string_view text) {
  fell_ill(sickness::all, why, text);
  pause(++pauses_);
  shared_.refusal = text;
  reconnect_ = reconnect_ || why.reconnect;
  outcome refused;
  refused.what = refused.grant = outcome::type::refused;
  refused.text = text;
  for (owner_state* one : call.owners)
    if (name_machine::goes_again(*one, shared_.now))
      one->of.not_run(*one, &why, text);
    else
      one->of.answered(*one, refused);
  for (renewal* side : call.renewals) side->of->of.renewed(*side, refused);
  if (first_word(text) == "LOADING") shared_.renewals->want_all();  // it has been started anew
  if (!call.plain) return;
  operation& plain = *call.plain;
  plain.text = text;
  plain.unseen = false;
  if (!goes_on(plain, why.code, text)) return expire_plain(plain, why.code);
  shared_.requests->add(plain);
}

void session::on_plain(sent_call& call, reply const& answer) {
  if (answer.is_error()) {
    auto const why = classify(answer.text);
    if (why.no_script && call.text && !call.whole) {
      unknown_.insert(call.text);
      if (call.plain) shared_.requests->add(*call.plain);
      return;
    }
    if (why.executed == server_error::ran::no && why.transient) return nothing_ran(call, why, answer.text);
  } else {
    recovered(sickness::all);
  }
  if (!call.plain) return;
  operation& plain = *call.plain;
  error_code error;
  plain.unseen = false;
  plain.text = answer.is_error() ? answer.text : std::string();
  if (answer.is_error()) {
    error = classify(answer.text).code;
  } else if (plain.what == operation::type::connect) {
    plain.yes = true;
    waking_.push_back(plain);
    return end_connects();
  } else if (plain.what == operation::type::query) {
    if (!plain.which->read_query(plain.question, answer, plain.value)) error = errc::server_error;
  } else {
    outcome found;
    if (answer.is_array() && answer.elements.size() == 1)
      found = plain.which->read(ask::force_unlock, {.what = ask::force_unlock}, answer.elements[0]);
    plain.yes = found.what == outcome::type::released;
    if (plain.yes) user_.forced(plain, call.sent);
    plain.text = found.text;
    if (found.not_published)
      shared_.note(event_type::publish_refused, plain.name, 0, {}, {}, {}, plain.which->rules().name);
    if (found.what == outcome::type::refused) error = classify(found.text).code;
    if (found.what == outcome::type::malformed) error = errc::server_error;
  }
  expire_plain(plain, error);
}

// One call that its discarded connection leaves behind. Its bytes may still run on the server.
void session::unanswered(sent_call& call, orphan& from, error_code const& why, std::string_view text) {
  for (owner_state* one : call.owners) {
    orphans_.waits(*one);
    one->of.unanswered(*one, text);
  }
  for (renewal* side : call.renewals) side->of->of.renewal_unanswered(*side, why);  // asked anew next time
  if (call.what != sent_call::type::plain || !call.plain) return;
  operation& plain = *call.plain;
  if (plain.what == operation::type::force_unlock) {  // never sent again: it might remove a successor
    from.forced.push_back(&plain);
    return;
  }
  if (!goes_on(plain, errc::connection_lost, {})) return expire_plain(plain, errc::connection_lost);
  shared_.requests->add(plain);
}

// ADDR protects a stranger if ids started anew.
void session::kill(orphan const& gone) {
  command_.clear();
  for (std::string_view word : {std::string_view("CLIENT"), std::string_view("KILL"), std::string_view("ID"),
                                std::string_view(gone.id), std::string_view("ADDR"), std::string_view(gone.address)})
    command_.add(word);
  write_words(link_of(role::shared), {.what = sent_call::type::kill, .serial = gone.serial});
}

// The call ends now, whatever is still under way for it.
void session::expire_plain(operation& call, error_code const& why) {
  if (call.what == operation::type::connect) --connects_;
  if (call.what == operation::type::connect && call.yes)
    waking_.erase(waking_.iterator_to(call));
  else
    shared_.requests->remove(call);
  if (lane_call_.plain == &call) lane_call_.plain = nullptr;
  for (auto& one : links_)
    for (auto& sent : one.unanswered)
      if (sent.plain == &call) sent.plain = nullptr;
  orphans_.forget(call);
  shared_.timers.drop(call.expiry);
  call.where = operation::place::idle;
  call.error = why;
  shared_.explain(call);
  shared_.complete(call);
}

void session::forget_plain_calls(error_code const& why) {
  std::vector<operation*> calls;
  for (auto& call : shared_.requests->plain()) calls.push_back(&call);
  for (auto& call : waking_) calls.push_back(&call);
  if (lane_call_.plain) calls.push_back(lane_call_.plain);
  for (auto& one : links_)
    for (auto& sent : one.unanswered)
      if (sent.plain) calls.push_back(sent.plain);
  for (operation* call : orphans_.forced()) calls.push_back(call);
  for (operation* call : calls) expire_plain(*call, why);
}

}  // namespace latchkey::detail
