#include <machine/connections.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr milliseconds most_late{5};      // of a timer that is in time
constexpr milliseconds time_to_read{50};  // the answers that a busy process has not read
constexpr std::string_view hung_up = "the server closed the connection";
constexpr int in_haste = 16;  // in `retry_delay`, of command connections that were of use; at once twice as many
constexpr unsigned used_up_haste = 3;  // which of the growing pauses is made between short lives that were of use

}  // namespace

connections::connections(context& shared, hindrance& away, identity who, connections_user& user, timer_node& timer)
    : shared_(shared), away_(away), who_(std::move(who)), user_(user), timer_(timer) {
  shared_.secret = who_.password;
  away_.may_pass(who_.says("no connection yet"));
}

connections::~connections() {
  for (auto& connection : links_) shared_.timers.drop(connection.timer);
}

link* connections::find(std::uint32_t serial) {
  for (auto& connection : links_)
    if (connection.serial == serial && connection.at != link::state::down) return &connection;
  return nullptr;
}

// --- a turn ---

void connections::flush(io_actions& io) {
  for (auto& connection : links_)
    if (!connection.out.empty()) {
      shared_.counters.bytes_sent += connection.out.size();
      io.write.push_back({connection.serial, std::exchange(connection.out, {})});
    }
  io.close.insert(io.close.end(), closing_.begin(), closing_.end());
  io.abort.insert(io.abort.end(), aborting_.begin(), aborting_.end());
  io.lend.insert(io.lend.end(), lending_.begin(), lending_.end());
  closing_.clear();
  aborting_.clear();
  lending_.clear();
}

void connections::open_needed(needs const& wanted, io_actions& io) {
  link& leader = of(role::shared);
  if (leader.at == link::state::down) {
    if (wanted.server) open(leader, io);
    return;
  }
  if (leader.at != link::state::up || shared_.closed()) return;
  if (wanted.direct && !check_refused_ && of(role::direct).at == link::state::down) open(of(role::direct), io);
  if (wanted.messages && of(role::messages).at == link::state::down) open(of(role::messages), io);
}

void connections::open(link& connection, io_actions& io) {
  if (connection.retry_at > shared_.now) return shared_.timers.set_lazily(timer_, connection.retry_at);
  connection.serial = shared_.next_serial++;
  connection.at = link::state::opening;
  connection.since = connection.heard = shared_.now;
  bool const leads = connection.of == role::shared;
  io.open.push_back({.as = connection.of,
                     .serial = connection.serial,
                     .to_peer = !leads,
                     .leader = leads ? 0 : of(role::shared).serial,
                     .to = who_.at});
  connection.plan(shared_);
}

void connections::opened(std::uint32_t serial) {
  link* connection = find(serial);
  if (!connection || connection->at != link::state::opening) return;
  connection->at = link::state::greeting;
  connection->heard = shared_.now;
  if (connection->of == role::shared && !aside_)
    away_.unless_known(who_.says("connected, but the server has not answered yet"));
  greet(*connection);
  shared_.out->turn = true;
}

void connections::ready(link& connection) {
  connection.at = link::state::up;
  connection.since = connection.heard = shared_.now;
  shared_.counters.reconnects += connection.was_up;
  connection.was_up = true;
  shared_.out->turn = true;
  if (!aside_) switch (connection.of) {
      case role::shared:
        connection.counted = true;
        shared_.counters.connected = ++shared_.servers_up > 0;
        away_.over();
        shared_.note(event_type::connected, {}, 0, {}, connection.address);
        break;
      case role::direct: lending_.push_back(connection.serial); break;
      case role::messages:
      case role::scout: break;
    }
  user_.on_up(connection);
  connection.plan(shared_);
}

// --- ends ---

void connections::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (link* connection = find(serial)) failed(*connection, why, text, is_transient(why));
}

std::string connections::identity::says(std::string_view text) const {
  std::string said = address;
  if (!said.empty()) said += ": ";
  return said.append(text);
}

void connections::failed(link& connection, error_code const& why, std::string_view words, bool transient) {
  bool const leads = connection.of == role::shared;
  bool const no_server = why == errc::connect_failed || why == errc::tls_failed;
  std::string const text = no_server ? who_.says(words) : std::string(words);
  if (leads && !aside_) away_.because(who_.says(words), why, transient);
  if (connection.of != role::direct && !aside_) shared_.note(event_type::connect_failed, {}, 0, why, text);
  discard(connection, why, text);
  if (leads) user_.on_trouble(why, text, transient);
}

void connections::broken(std::uint32_t serial, error_code const&) {
  link* connection = find(serial);
  if (!connection) return;
  if (connection->at != link::state::up) return failed(*connection, errc::connect_failed, hung_up, true);
  discard(*connection, errc::connection_lost, hung_up);
}

// One that was of use, or lived for a while, is replaced at once, though not again and again; the pauses grow from the
// second failure in a row.
void connections::plan_reconnect(link& connection, bool was_up) {
  milliseconds const lasting = shared_.settings.retry_delay;
  bool const lived = was_up && after(connection.since, lasting) <= shared_.now;
  if (lived || connection.of_use) connection.failures = 0;
  // The lanes end with the leader; that says nothing of them.
  bool const by_itself = connection.of == role::shared || of(role::shared).at != link::state::down;
  if (lived && connection.of_use)
    connection.soon_lost = 0;
  else if (by_itself)
    ++connection.soon_lost;
  unsigned pauses = connection.failures++;
  // Short lives that were of use count, too: a SUBSCRIBE may be confirmed and then dropped, again and again.
  if (pauses == 0 && shared_.now < connection.no_haste) pauses = std::max(used_up_haste, connection.soon_lost);
  if (pauses > 0) {
    connection.retry_at = after(shared_.now, shared_.pause(pauses, lasting));
    return;
  }
  connection.retry_at = shared_.now;
  connection.spent = after(std::max(connection.spent, shared_.now), lasting / in_haste);
  if (connection.of == role::messages || connection.spent > after(shared_.now, 2 * lasting))
    connection.no_haste = after(shared_.now, lasting);
}

// Nothing more is heard of this connection. What was unanswered on it may still run: it is killed before anything is
// sent again.
void connections::discard(link& connection, error_code const& why, std::string_view words) {
  if (connection.at == link::state::down) return;
  bool const by_us = why == errc::timeout || why == errc::connection_lost;
  std::string const told = who_.says(words.empty() ? why.message() : std::string(words));
  std::string_view const text = by_us ? std::string_view(told) : words;  // its own words say what is the matter
  bool const was_up = connection.at == link::state::up;
  closing_.push_back(connection.serial);
  shared_.out->turn = true;
  // What was not sent on it, or waits for a KILL, has waited for it in vain; what was sent counts that below.
  // A server that refused was told of by its answer.
  bool const troubled = why && was_up && !aside_;
  if (connection.of == role::shared && troubled && why != errc::read_only) user_.on_trouble(why, text, true);
  remains left{connection.id, connection.address, server_.run_id, connection.serial,
               std::exchange(connection.unanswered, {})};
  for (; !connection.unsynced.empty(); connection.unsynced.pop_back())
    left.calls.push_front(std::move(connection.unsynced.back().call));
  if (connection.lent) left.calls.push_back(std::exchange(connection.borrowed, {}));
  if (why)
    plan_reconnect(connection, was_up);
  else
    connection.rested(shared_.now);
  connection.reset();
  shared_.timers.drop(connection.timer);
  bool const messages_alone = connection.of == role::messages && of(role::shared).at != link::state::down;
  if (troubled && (connection.of == role::shared || messages_alone))
    shared_.note(event_type::disconnected, {}, 0, why, text);
  if (connection.of == role::shared && !aside_) {
    if (std::exchange(connection.counted, false)) shared_.counters.connected = --shared_.servers_up > 0;
    if (troubled) away_.because(told, why == errc::read_only ? why : error_code(), true);
    discard(of(role::direct), why, words);
    discard(of(role::messages), why, words);
    of(role::direct).failures = of(role::messages).failures = 0;
    of(role::direct).retry_at = of(role::messages).retry_at = shared_.now;
  }
  user_.on_down(connection, std::move(left), why, text);
}

// --- another server has taken over ---

void connections::abandon() {
  std::vector<std::uint32_t> before = std::exchange(closing_, {});
  discard(of(role::shared), errc::connection_lost, "another server has taken over");
  std::swap(before, closing_);
  aborting_.insert(aborting_.end(), before.begin(), before.end());
  aside_ = true;
  hurry();
}

void connections::lead() {
  aside_ = false;
  away_.may_pass(who_.says("no connection yet"));
  end();
  hurry();
}

void connections::hurry() {
  if (!aside_) away_.forget_why();
  for (auto& connection : links_) connection.retry_at = shared_.now;
  shared_.out->turn = true;
}

void connections::end() {
  if (of(role::shared).at != link::state::down) discard(of(role::shared), {});
  for (auto& connection : links_) connection.was_up = false;
}

// --- time ---

void connections::on_timer(link& connection) {
  auto const late = [&](instant since, milliseconds limit) { return after(since, limit) <= shared_.now; };
  auto const& settings = shared_.settings;
  if (connection.at == link::state::down) return;
  if (connection.at != link::state::up) {
    if (late(connection.since, settings.connect_timeout) &&
        look_again(connection, connection.since, settings.connect_timeout))
      return;
    if (late(connection.since, settings.connect_timeout))
      return failed(connection, errc::connect_failed, "no connection in time", true);
  } else if (connection.lent && late(connection.borrowed.sent, settings.timeout)) {
    return discard(connection, errc::timeout, "no answer in time");
  } else if (!connection.unanswered.empty() && late(connection.unanswered.front().sent, settings.timeout)) {
    if (look_again(connection, connection.unanswered.front().sent, settings.timeout)) return;
    return discard(connection, errc::timeout, "no answer in time");
  } else if (settings.ping_interval.count() > 0 && late(connection.heard, settings.ping_interval)) {
    ping(connection);
  }
  connection.plan(shared_);
}

// The timer itself came late: this process was stopped, or too busy to read, and the answer may stand in the socket.
// There is time to read it; and more, as long as something comes.
bool connections::look_again(link& connection, instant since, milliseconds limit) {
  if (shared_.now <= after(after(since, limit), most_late)) return false;
  if (connection.late_since != since) {
    connection.late_since = since;
    connection.late_end = after(shared_.now, limit);
  } else if (connection.heard <= connection.looked || shared_.now >= connection.late_end) {
    return false;
  }
  connection.looked = shared_.now;
  shared_.timers.set(connection.timer, after(shared_.now, time_to_read));
  return true;
}

void connections::ask_role() {
  link& connection = of(role::shared);
  auto const asked = [](sent_call const& call) { return call.what == sent_call::type::role; };
  if (connection.at != link::state::up ||
      std::any_of(connection.unanswered.begin(), connection.unanswered.end(), asked))
    return;
  command_.say("ROLE");
  connection.write(shared_, command_, {.what = sent_call::type::role});
  shared_.out->turn = true;
}

void connections::ping(link& connection) {
  if (connection.lent || connection.polled) {
    connection.heard = shared_.now;
    return;
  }
  connection.polled = true;
  command_.say("PING");
  connection.write(shared_, command_, {.what = sent_call::type::ping});
  shared_.out->turn = true;
}

// --- answers ---

link* connections::feed(std::uint32_t serial, std::string_view bytes) {
  link* connection = find(serial);
  if (!connection) return nullptr;
  connection->heard = shared_.now;
  shared_.counters.bytes_received += bytes.size();
  connection->reader.feed(bytes);
  return connection;
}

bool connections::next(link& connection, reply& answer) {
  auto const got = connection.reader.next(answer);
  if (got != reply_reader::result::malformed) return got == reply_reader::result::reply;
  std::string const problem = connection.reader.problem();
  if (connection.at == link::state::up)
    discard(connection, errc::protocol_error, problem);
  else
    failed(connection, errc::protocol_error, problem, false);
  return false;
}

std::optional<sent_call> connections::answered(link& connection, reply const& answer) {
  if (connection.unanswered.empty()) {
    // Before it closes a connection that it does not want, the server says why.
    auto const why = answer.is_error() ? classify(answer.text) : server_error{errc::protocol_error};
    if (connection.at == link::state::up)
      discard(connection, why.code, answer.text);
    else
      failed(connection, why.code, answer.text, true);
    return {};
  }
  std::optional<sent_call> call(std::move(connection.unanswered.front()));
  connection.unanswered.pop_front();
  using asked = sent_call::type;
  bool const real = call->what != asked::hello && call->what != asked::check && call->what != asked::kill;
  connection.of_use = connection.of_use || (real && !answer.is_error());
  switch (call->what) {
    case asked::hello: on_hello(connection, *call, answer); return {};
    case asked::check: on_check(*call, answer); return {};
    case asked::ping: connection.polled = false; return {};
    case asked::role: on_role(connection, answer, call->sent); return {};
    case asked::asking:
      if (answer.is_error() && !std::exchange(asking_refused_, true))
        shared_.note(event_type::warning, {}, 0, errc::server_error, who_.says(answer.text));
      return {};
    case asked::tells: return {};
    default: return call;
  }
}

// --- what others know of the calls ---

bool connections::decided(role which) const {
  link const& connection = of(which);
  if (which == role::direct && check_refused_) return true;
  // The first failure is followed by an attempt without a pause.
  return connection.at == link::state::up || (connection.at == link::state::down && connection.failures > 1);
}

bool connections::lane_idle() const {
  link const& lane = of(role::direct);
  return lane.at == link::state::up && lending_.empty() && !lane.lent && !lane.polled;
}

bool connections::lent(std::uint32_t serial) const {
  link const& lane = of(role::direct);
  return lane.at == link::state::up && lane.serial == serial && lane.lent;
}

void connections::forget(operation& plain) {
  for (auto& connection : links_) {
    if (connection.borrowed.plain == &plain) connection.borrowed.plain = nullptr;
    for (auto& sent : connection.unanswered)
      if (sent.plain == &plain) sent.plain = nullptr;
    for (auto& kept : connection.unsynced)
      if (kept.call.plain == &plain) kept.call.plain = nullptr;
  }
}

void connections::collect(std::vector<operation*>& plain) const {
  if (operation* const borrowed = of(role::direct).borrowed.plain) plain.push_back(borrowed);
  for (auto const& connection : links_) {
    for (auto const& sent : connection.unanswered)
      if (sent.plain) plain.push_back(sent.plain);
    for (auto const& kept : connection.unsynced)
      if (kept.call.plain) plain.push_back(kept.call.plain);
  }
}

bool connections::idle() const {
  return std::all_of(links_.begin(), links_.end(), [](link const& connection) {
    return !connection.lent && connection.unsynced.empty() &&
           std::none_of(connection.unanswered.begin(), connection.unanswered.end(), [](sent_call const& call) {
             return call.what == sent_call::type::script || call.what == sent_call::type::plain;
           });
  });
}

bool connections::settled() const {
  return std::all_of(links_.begin(), links_.end(), [](link const& connection) {
    bool const rests = connection.at == link::state::up || connection.at == link::state::down;
    return rests && !connection.lent && connection.unanswered.empty() && connection.unsynced.empty() &&
           connection.out.empty();
  });
}

}  // namespace latchkey::detail
