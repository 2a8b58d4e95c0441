#include <machine/plain_calls.hpp>

#include <machine/home.hpp>
#include <wire/packed.hpp>

namespace latchkey::detail {

bool plain_calls::goes_on(operation& plain, error_code const& why, std::string_view text) const {
  if (plain.what != operation::type::connect) return shared_.goes_on(plain, user_.home_of(plain));
  // It has a wait, and ends with the last that was heard.
  plain.error = why;
  plain.text = text;
  return true;
}

void plain_calls::answered(sent_call const& call, reply const& answer, outbox const& by) {
  operation& plain = *call.plain;
  error_code error;
  plain.unseen = false;
  plain.text = answer.is_error() ? answer.text : std::string();
  if (answer.is_error()) {
    error = classify(answer.text).code;
  } else if (plain.what == operation::type::connect) {
    plain.yes = true;
    waking_.push_back(plain);
    return;
  } else if (plain.what == operation::type::query && has_text(plain.question)) {
    plain.argument = std::make_shared<std::string const>(packed(answer));
  } else if (plain.what == operation::type::query) {
    if (!plain.which->read_query(plain.question, answer, plain.value)) {
      error = errc::server_error;
      plain.text = answer.kind == reply::type::string ? "the value is not an integer" : "an answer of unexpected form";
    }
    user_.correct(plain);
  } else {
    outcome found;
    ask const asked = plain.argument ? ask::release : ask::force_unlock;
    if (answer.is_array() && answer.elements.size() == 1)
      found = plain.which->read(asked, {.what = asked, .mode = plain.mode}, answer.elements[0]);
    plain.yes = found.what == outcome::type::released;
    if (plain.yes && &user_.home_of(plain).requests != &by)
      user_.home_of(plain).requests.tell(*plain.which, plain.name);
    if (plain.yes) user_.forced(plain, call.sent);
    plain.text = found.text;
    if (found.not_published)
      shared_.note(event_type::publish_refused, plain.name, 0, {}, {}, {}, plain.which->rules().name);
    if (found.what == outcome::type::refused) error = classify(found.text).code;
    if (found.what == outcome::type::malformed) error = errc::server_error;
  }
  expire(plain, error);
}

void plain_calls::not_run(operation& plain, server_error const& why, std::string_view text) {
  plain.text = text;
  plain.unseen = false;
  if (!goes_on(plain, why.code, text)) return expire(plain, why.code);
  user_.home_of(plain).requests.add(plain);
}

void plain_calls::unanswered(operation& plain) {
  if (!goes_on(plain, errc::connection_lost, {})) return expire(plain, errc::connection_lost);
  user_.home_of(plain).requests.add(plain);
}

void plain_calls::end_connects() {
  while (!waking_.empty()) expire(waking_.front(), error_code());
}

// The connection that answered is gone.
void plain_calls::restart_connects() {
  while (!waking_.empty()) {
    operation& call = waking_.front();
    waking_.pop_front();
    call.yes = false;
    call.error = errc::connection_lost;
    user_.home_of(call).requests.add(call);
  }
}

void plain_calls::expire(operation& call) {
  if (call.yes && call.what == operation::type::connect) return expire(call, error_code());
  expire(call, call.error ? call.error : errc::timeout);
}

void plain_calls::expire(operation& call, error_code const& why) {
  if (call.what == operation::type::connect) --connects_;
  if (call.what == operation::type::connect && call.yes)
    waking_.erase(waking_.iterator_to(call));
  else
    user_.home_of(call).requests.remove(call);
  user_.forget(call);
  shared_.timers.drop(call.expiry);
  call.where = operation::place::idle;
  call.error = why;
  shared_.explain(call, user_.home_of(call));
  shared_.complete(call);
}

void plain_calls::collect(std::vector<operation*>& calls) {
  for (auto& call : waking_) calls.push_back(&call);
}

}  // namespace latchkey::detail
