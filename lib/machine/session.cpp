#include <machine/session.hpp>

#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/subscriptions.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr milliseconds most_late{5};      // of a timer that is in time
constexpr milliseconds time_to_read{50};  // the answers that a busy process has not read
constexpr std::string_view hung_up = "the server closed the connection";
constexpr int in_haste = 16;  // in `retry_delay`, of command connections that were of use; at once twice as many
constexpr unsigned used_up_haste = 3;   // which of the growing pauses is made between short lives that were of use
constexpr unsigned most_soon_lost = 3;  // message connections, before waiters no longer rely on them

}  // namespace

session::session(context& shared, identity who, session_user& user)
    : shared_(shared), who_(std::move(who)), user_(user) {
  shared_.secret = who_.password;
  timer_.what = timer_node::type::session;
  timer_.of = this;
  shared_.trouble = at_address("no connection yet");
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
    orphans_.send();
    if (may_send()) send_requests();
  }
  if (link_of(role::messages).at == link::state::up) send_subscriptions();
  open_what_is_needed(io);
  bool const waits = !shared_.requests->empty() || shared_.renewals->wants_all();
  if (shared_.now < paused_until_ && waits) shared_.timers.set_lazily(timer_, paused_until_);
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
  bool const needed = user_.needs_server() || orphans_.any_in_doubt() || !orphans_.empty();
  if (leader.at == link::state::down) {
    if (needed) open(leader, io);
    return;
  }
  if (leader.at != link::state::up || shared_.closed()) return;
  if (direct_wanted_ && !check_refused_ && link_of(role::direct).at == link::state::down)
    open(link_of(role::direct), io);
  bool const listens = shared_.channels->wanted() || connects_ > 0;
  if (listens && link_of(role::messages).at == link::state::down) open(link_of(role::messages), io);
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
  if (one->of == role::shared) shared_.trouble = at_address("connected, but the server has not answered yet");
  greet(*one);
  shared_.out->turn = true;
}

void session::ready(link& one) {
  one.at = link::state::up;
  one.since = one.heard = shared_.now;
  shared_.counters.reconnects += one.was_up;
  one.was_up = true;
  shared_.out->turn = true;
  switch (one.of) {
    case role::shared:
      shared_.counters.connected = true;
      shared_.trouble.clear();
      shared_.note(event_type::connected, {}, 0, {}, one.address);
      shared_.renewals->want_all();
      orphans_.connected(one.id);
      break;
    case role::direct: lending_.push_back(one.serial); break;
    case role::messages:
      shared_.channels->connected();
      if (connects_ > 0) ask_to_subscribe(one);
      break;
  }
  plan(one);
  end_connects();
}

// --- ends ---

void session::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (link* one = find(serial)) failed(*one, why, text, true);
}

std::string session::at_address(std::string_view text) const {
  std::string said = who_.address;
  if (!said.empty()) said += ": ";
  return said.append(text);
}

void session::failed(link& one, error_code const& why, std::string_view words, bool transient) {
  bool const leads = one.of == role::shared;
  std::string const text = why == errc::connect_failed ? at_address(words) : std::string(words);
  if (leads) shared_.trouble = at_address(words);
  if (one.of != role::direct) shared_.note(event_type::connect_failed, {}, 0, why, text);
  discard(one, why, text);
  if (leads) user_.trouble(why, text, transient);
}

void session::broken(std::uint32_t serial, error_code const&) {
  link* one = find(serial);
  if (!one) return;
  if (one->at != link::state::up) return failed(*one, errc::connect_failed, hung_up, true);
  discard(*one, errc::connection_lost, hung_up);
}

// One that was of use, or lived for a while, is replaced at once, though not again and again; the pauses grow from the
// second failure in a row.
void session::plan_reconnect(link& one, bool was_up) {
  milliseconds const lasting = shared_.settings.retry_delay;
  bool const lived = was_up && after(one.since, lasting) <= shared_.now;
  if (lived || one.of_use) one.failures = 0;
  // The lanes end with the leader; that says nothing of them.
  bool const by_itself = one.of == role::shared || link_of(role::shared).at != link::state::down;
  if (lived && one.of_use)
    one.soon_lost = 0;
  else if (by_itself)
    ++one.soon_lost;
  unsigned pauses = one.failures++;
  // Short lives that were of use count, too: a SUBSCRIBE may be confirmed and then dropped, again and again.
  if (pauses == 0 && shared_.now < one.no_haste) pauses = std::max(used_up_haste, one.soon_lost);
  if (pauses > 0) {
    one.retry_at = after(shared_.now, shared_.pause(pauses, lasting));
    return;
  }
  one.retry_at = shared_.now;
  one.spent = after(std::max(one.spent, shared_.now), lasting / in_haste);
  if (one.of == role::messages || one.spent > after(shared_.now, 2 * lasting))
    one.no_haste = after(shared_.now, lasting);
}

// Nothing more is heard of this connection. What was unanswered on it may still run: it is killed before anything is
// sent again.
void session::discard(link& one, error_code const& why, std::string_view text) {
  if (one.at == link::state::down) return;
  bool const was_up = one.at == link::state::up;
  closing_.push_back(one.serial);
  shared_.out->turn = true;
  // What was not sent on it, or waits for a KILL, has waited for it in vain; what was sent counts that below.
  // A server that refused was told of by its answer.
  if (one.of == role::shared && was_up && why != errc::read_only) user_.trouble(why, text, true);
  auto calls = std::exchange(one.unanswered, {});
  if (one.lent) calls.push_back(std::exchange(lane_call_, {}));
  orphan gone{one.id, one.address, orphans_.run_id(), one.serial, false, {}};
  plan_reconnect(one, was_up);
  one.reset();
  shared_.timers.drop(one.timer);
  bool const messages_alone = one.of == role::messages && link_of(role::shared).at != link::state::down;
  if (was_up && (one.of == role::shared || messages_alone)) shared_.note(event_type::disconnected, {}, 0, why, text);
  if (one.of == role::shared) {
    shared_.counters.connected = false;
    if (was_up) shared_.trouble = at_address(text.empty() ? why.message() : std::string(text));
    discard(link_of(role::direct), why);
    discard(link_of(role::messages), why);
    link_of(role::direct).failures = link_of(role::messages).failures = 0;
    link_of(role::direct).retry_at = link_of(role::messages).retry_at = shared_.now;
    orphans_.disconnected();
    restart_connects();
  }
  if (one.of == role::messages) {
    shared_.channels->disconnected(one.soon_lost >= most_soon_lost);
    subscribe_asked_ = false;
  }
  for (auto& call : calls) unanswered(call, gone, why, text);
  bool const sent_anything = std::any_of(calls.begin(), calls.end(), [](sent_call const& call) {
    return call.what == sent_call::type::script ||
           (call.what == sent_call::type::plain && call.asked == ask::force_unlock) ||
           call.what == sent_call::type::renewals;
  });
  if (sent_anything) orphans_.add(std::move(gone));
  end_connects();
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
    if (late(one.since, settings.connect_timeout) && look_again(one, one.since, settings.connect_timeout)) return;
    if (late(one.since, settings.connect_timeout))
      return failed(one, errc::connect_failed, "no connection in time", true);
  } else if (one.lent && late(lane_call_.sent, settings.timeout)) {
    return discard(one, errc::timeout, "no answer in time");
  } else if (!one.unanswered.empty() && late(one.unanswered.front().sent, settings.timeout)) {
    if (look_again(one, one.unanswered.front().sent, settings.timeout)) return;
    return discard(one, errc::timeout, "no answer in time");
  } else if (settings.ping_interval.count() > 0 && late(one.heard, settings.ping_interval)) {
    ping(one);
  }
  plan(one);
}

// The timer itself came late: this process was stopped, or too busy to read, and the answer may stand in the socket.
// There is time to read it; and more, as long as something comes.
bool session::look_again(link& one, instant since, milliseconds limit) {
  if (shared_.now <= after(after(since, limit), most_late)) return false;
  if (one.late_since != since) {
    one.late_since = since;
    one.late_end = after(shared_.now, limit);
  } else if (one.heard <= one.looked || shared_.now >= one.late_end) {
    return false;
  }
  one.looked = shared_.now;
  shared_.timers.set(one.timer, after(shared_.now, time_to_read));
  return true;
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
  return !orphans_.any_in_doubt() && shared_.requests->empty() && std::all_of(links_.begin(), links_.end(), idle);
}

}  // namespace latchkey::detail
