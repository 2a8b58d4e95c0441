#include <machine/session.hpp>

#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/subscriptions.hpp>

#include <algorithm>

namespace latchkey::detail {

session::session(context& shared, identity who, session_user& user)
    : shared_(shared), who_(std::move(who)), user_(user) {
  timer_.what = timer_node::type::session;
  timer_.of = this;
}

session::~session() = default;

link* session::find(std::uint32_t serial) {
  for (auto& one : links_)
    if (one.serial == serial && one.at != link::state::down) return &one;
  return nullptr;
}

// --- a turn ---

void session::turn(io_actions& io) {
  if (link_of(role::shared).at == link::state::up) {
    send_kills();
    if (may_send()) send_requests();
  }
  if (link_of(role::messages).at == link::state::up) send_subscriptions();
  open_what_is_needed(io);
  if (shared_.now < paused_until_ && !shared_.requests->empty()) shared_.timers.set_lazily(timer_, paused_until_);
  for (auto& one : links_)
    if (!one.out.empty()) {
      shared_.counters.bytes_sent += one.out.size();
      io.write.push_back({one.serial, std::exchange(one.out, {})});
    }
  io.close.insert(io.close.end(), closing_.begin(), closing_.end());
  io.lend.insert(io.lend.end(), lending_.begin(), lending_.end());
  closing_.clear();
  lending_.clear();
}

void session::open_what_is_needed(io_actions& io) {
  link& leader = link_of(role::shared);
  bool const needed = user_.needs_server() || !unsettled_.empty() || !discarded_.empty();
  if (leader.at == link::state::down) {
    if (needed) open(leader, io);
    return;
  }
  if (leader.at != link::state::up || shared_.closed) return;
  if (direct_wanted_ && !check_refused_ && link_of(role::direct).at == link::state::down)
    open(link_of(role::direct), io);
  if (shared_.channels->wanted() && link_of(role::messages).at == link::state::down) open(link_of(role::messages), io);
}

void session::open(link& one, io_actions& io) {
  if (one.retry_at > shared_.now) return shared_.timers.set_lazily(timer_, one.retry_at);
  one.serial = next_serial_++;
  one.at = link::state::opening;
  one.since = one.heard = shared_.now;
  io.open.push_back({one.of, one.serial, one.of != role::shared});
  plan(one);
}

void session::opened(std::uint32_t serial) {
  link* one = find(serial);
  if (!one || one->at != link::state::opening) return;
  one->at = link::state::greeting;
  one->heard = shared_.now;
  greet(*one);
  shared_.out->turn = true;
}

void session::ready(link& one) {
  one.at = link::state::up;
  one.failures = 0;
  one.since = one.heard = shared_.now;
  shared_.counters.reconnects += one.was_up;
  one.was_up = true;
  shared_.out->turn = true;
  switch (one.of) {
    case role::shared:
      shared_.counters.connected = true;
      shared_.trouble.clear();
      shared_.note(event_type::connected, {}, 0, {}, one.address);
      if (kill_refused_ || discarded_.empty()) settle_if_fenced();
      break;
    case role::direct: lending_.push_back(one.serial); break;
    case role::messages: shared_.channels->connected(); break;
  }
  plan(one);
}

// --- ends ---

void session::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (link* one = find(serial)) failed(*one, why, text, true);
}

void session::failed(link& one, error_code const& why, std::string_view text, bool transient) {
  bool const leads = one.of == role::shared;
  if (leads) {
    shared_.trouble = text;
    shared_.note(event_type::connect_failed, {}, 0, why, text);
  }
  discard(one, why, text);
  if (leads) user_.trouble(why, text, transient);
}

void session::broken(std::uint32_t serial, error_code const&) {
  link* one = find(serial);
  if (!one) return;
  if (one->at != link::state::up) return failed(*one, errc::connect_failed, "the server closed the connection", true);
  discard(*one, errc::connection_lost);
}

// Nothing more is heard of this connection. What was unanswered on it may still run: it is fenced before anything is
// sent again.
void session::discard(link& one, error_code const& why, std::string_view text) {
  if (one.at == link::state::down) return;
  bool const was_up = one.at == link::state::up;
  closing_.push_back(one.serial);
  shared_.out->turn = true;
  auto calls = std::exchange(one.unanswered, {});
  if (one.lent) calls.push_back(std::exchange(lane_call_, {}));
  discarded gone{one.id, one.address, one.serial, false, {}};
  one.reset();
  shared_.timers.drop(one.timer);
  // The first reconnection is at once; the pauses begin with the second failure in a row.
  ++one.failures;
  one.retry_at = one.failures <= 1 ? shared_.now
                                   : after(shared_.now, shared_.pause(one.failures - 1, shared_.settings.retry_delay));
  if (one.of == role::shared) {
    shared_.counters.connected = false;
    if (was_up) shared_.note(event_type::disconnected, {}, 0, why, text);
    discard(link_of(role::direct), why);
    discard(link_of(role::messages), why);
    link_of(role::direct).failures = link_of(role::messages).failures = 0;
    link_of(role::direct).retry_at = link_of(role::messages).retry_at = shared_.now;
    for (auto& old : discarded_) old.asked = false;
  }
  if (one.of == role::messages) shared_.channels->disconnected();
  for (auto& call : calls) unanswered(call, gone);
  bool const sent_anything = std::any_of(calls.begin(), calls.end(), [](sent_call const& call) {
    return call.what == sent_call::type::script ||
           (call.what == sent_call::type::plain && call.asked == ask::force_unlock) ||
           call.what == sent_call::type::renewals;
  });
  if (sent_anything) remember(one, std::move(gone));
}

// --- time ---

void session::plan(link& one) {
  instant next = never;
  if (one.at != link::state::up) {
    next = after(one.since, shared_.settings.connect_timeout);
  } else {
    if (one.lent) next = after(lane_call_.sent, shared_.settings.timeout);
    if (!one.unanswered.empty()) next = std::min(next, after(one.unanswered.front().sent, shared_.settings.timeout));
    if (shared_.settings.ping_interval.count() > 0)
      next = std::min(next, after(one.heard, shared_.settings.ping_interval));
  }
  if (next != never) shared_.timers.set_lazily(one.timer, next);
}

void session::on_link_timer(link& one) {
  auto const late = [&](instant since, milliseconds limit) { return after(since, limit) <= shared_.now; };
  auto const& settings = shared_.settings;
  if (one.at == link::state::down) return;
  if (one.at != link::state::up) {
    if (late(one.since, settings.connect_timeout))
      return failed(one, errc::connect_failed, "no connection in time", true);
  } else if ((one.lent && late(lane_call_.sent, settings.timeout)) ||
             (!one.unanswered.empty() && late(one.unanswered.front().sent, settings.timeout))) {
    return discard(one, errc::timeout, "no answer in time");
  } else if (settings.ping_interval.count() > 0 && late(one.heard, settings.ping_interval)) {
    ping(one);
  }
  plan(one);
}

void session::ping(link& one) {
  if (one.lent || one.polled) {
    one.heard = shared_.now;
    return;
  }
  one.polled = true;
  command_.clear();
  command_.add("PING");
  write_words(one, {.what = sent_call::type::ping});
  shared_.out->turn = true;
}

void session::on_timer() { shared_.out->turn = true; }

// The server executes nothing at the moment (loading, a slow script): requests wait, longer each time.
void session::pause(unsigned n) {
  paused_until_ = after(shared_.now, shared_.pause(n, shared_.settings.retry_delay));
  shared_.timers.set_lazily(timer_, paused_until_);
}

bool session::quiet() const {
  auto const idle = [](link const& one) {
    return !one.lent && std::none_of(one.unanswered.begin(), one.unanswered.end(), [](sent_call const& call) {
      return call.what == sent_call::type::script || call.what == sent_call::type::plain;
    });
  };
  return unsettled_.empty() && shared_.requests->empty() && std::all_of(links_.begin(), links_.end(), idle);
}

}  // namespace latchkey::detail
