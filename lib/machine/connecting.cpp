#include <machine/outbox.hpp>
#include <machine/session.hpp>
#include <machine/subscriptions.hpp>

namespace latchkey::detail {

// A connect is done when the server has run a script for it, and the other two connections are there or will not be
// soon. Which keys and channels a program will use is not known: what is asked for has neither.

void session::connect_begins() {
  ++connects_;
  direct_wanted_ = true;
}

bool session::goes_on(operation& plain, error_code const& why, std::string_view text) const {
  if (plain.what != operation::type::connect)
    return ++plain.attempts <= static_cast<unsigned>(shared_.settings.retry_attempts);
  // It has a wait, and ends with the last that was heard.
  plain.error = why;
  plain.text = text;
  return true;
}

void session::expire_plain(operation& call) {
  if (call.yes && call.what == operation::type::connect) return expire_plain(call, error_code());
  expire_plain(call, call.error ? call.error : errc::timeout);
}

bool session::decided(link const& one) const {
  if (one.of == role::direct && check_refused_) return true;
  if (one.of == role::messages && subscribe_asked_) return false;
  // The first failure is followed by an attempt without a pause.
  return one.at == link::state::up || (one.at == link::state::down && one.failures > 1);
}

void session::end_connects() {
  if (waking_.empty() || link_of(role::shared).at != link::state::up) return;
  if (!decided(link_of(role::direct)) || !decided(link_of(role::messages))) return;
  while (!waking_.empty()) expire_plain(waking_.front(), error_code());
}

// The connection that answered is gone.
void session::restart_connects() {
  while (!waking_.empty()) {
    operation& call = waking_.front();
    waking_.pop_front();
    call.yes = false;
    call.error = errc::connection_lost;
    shared_.requests->add(call);
  }
}

void session::ask_to_subscribe(link& one) {
  subscribe_asked_ = true;
  std::string const channel = "redisson_lock__channel:{" + shared_.client_id + "}";
  for (bool const begins : {true, false}) {
    command_.clear();
    command_.add(std::string_view(begins ? "SUBSCRIBE" : "UNSUBSCRIBE"));
    command_.add(channel);
    write_words(one, {.what = begins ? sent_call::type::may_subscribe : sent_call::type::unsubscribe});
  }
}

// Only this one channel refused says nothing: the channels that will be used may be allowed.
void session::on_may_subscribe(std::string_view refused) {
  subscribe_asked_ = false;
  if (refused.find("to run the") != refused.npos)
    shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error, refused);
  end_connects();
}

}  // namespace latchkey::detail
