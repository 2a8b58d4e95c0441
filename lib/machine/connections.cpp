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

connections::connections(context& shared, identity who, connections_user& user, timer_node& timer)
    : shared_(shared), who_(std::move(who)), user_(user), timer_(timer) {
  shared_.secret = who_.password;
  shared_.trouble = at_address("no connection yet");
}

connections::~connections() {
  for (auto& one : links_) shared_.timers.drop(one.timer);
}

link* connections::find(std::uint32_t serial) {
  for (auto& one : links_)
    if (one.serial == serial && one.at != link::state::down) return &one;
  return nullptr;
}

// --- a turn ---

void connections::flush(io_actions& io) {
  for (auto& one : links_)
    if (!one.out.empty()) {
      shared_.counters.bytes_sent += one.out.size();
      io.write.push_back({one.serial, std::exchange(one.out, {})});
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

void connections::open(link& one, io_actions& io) {
  if (one.retry_at > shared_.now) return shared_.timers.set_lazily(timer_, one.retry_at);
  one.serial = shared_.next_serial++;
  one.at = link::state::opening;
  one.since = one.heard = shared_.now;
  bool const leads = one.of == role::shared;
  io.open.push_back({.as = one.of,
                     .serial = one.serial,
                     .to_peer = !leads,
                     .leader = leads ? 0 : of(role::shared).serial,
                     .to = who_.at});
  one.plan(shared_);
}

void connections::opened(std::uint32_t serial) {
  link* one = find(serial);
  if (!one || one->at != link::state::opening) return;
  one->at = link::state::greeting;
  one->heard = shared_.now;
  if (one->of == role::shared && !aside_)
    shared_.trouble = at_address("connected, but the server has not answered yet");
  greet(*one);
  shared_.out->turn = true;
}

void connections::ready(link& one) {
  one.at = link::state::up;
  one.since = one.heard = shared_.now;
  shared_.counters.reconnects += one.was_up;
  one.was_up = true;
  shared_.out->turn = true;
  if (!aside_) switch (one.of) {
      case role::shared:
        one.counted = true;
        shared_.counters.connected = ++shared_.servers_up > 0;
        shared_.trouble.clear();
        shared_.note(event_type::connected, {}, 0, {}, one.address);
        break;
      case role::direct: lending_.push_back(one.serial); break;
      case role::messages:
      case role::scout: break;
    }
  user_.on_up(one);
  one.plan(shared_);
}

// --- ends ---

void connections::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (link* one = find(serial)) failed(*one, why, text, is_transient(why));
}

std::string connections::at_address(std::string_view text) const {
  std::string said = who_.address;
  if (!said.empty()) said += ": ";
  return said.append(text);
}

void connections::failed(link& one, error_code const& why, std::string_view words, bool transient) {
  bool const leads = one.of == role::shared;
  bool const no_server = why == errc::connect_failed || why == errc::tls_failed;
  std::string const text = no_server ? at_address(words) : std::string(words);
  if (leads && !aside_) shared_.trouble = at_address(words);
  if (one.of != role::direct && !aside_) shared_.note(event_type::connect_failed, {}, 0, why, text);
  discard(one, why, text);
  if (leads) user_.on_trouble(why, text, transient);
}

void connections::broken(std::uint32_t serial, error_code const&) {
  link* one = find(serial);
  if (!one) return;
  if (one->at != link::state::up) return failed(*one, errc::connect_failed, hung_up, true);
  discard(*one, errc::connection_lost, hung_up);
}

// One that was of use, or lived for a while, is replaced at once, though not again and again; the pauses grow from the
// second failure in a row.
void connections::plan_reconnect(link& one, bool was_up) {
  milliseconds const lasting = shared_.settings.retry_delay;
  bool const lived = was_up && after(one.since, lasting) <= shared_.now;
  if (lived || one.of_use) one.failures = 0;
  // The lanes end with the leader; that says nothing of them.
  bool const by_itself = one.of == role::shared || of(role::shared).at != link::state::down;
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
void connections::discard(link& one, error_code const& why, std::string_view text) {
  if (one.at == link::state::down) return;
  bool const was_up = one.at == link::state::up;
  closing_.push_back(one.serial);
  shared_.out->turn = true;
  // What was not sent on it, or waits for a KILL, has waited for it in vain; what was sent counts that below.
  // A server that refused was told of by its answer.
  bool const troubled = why && was_up && !aside_;
  if (one.of == role::shared && troubled && why != errc::read_only) user_.on_trouble(why, text, true);
  remains left{one.id, one.address, server_.run_id, one.serial, std::exchange(one.unanswered, {})};
  for (; !one.unsynced.empty(); one.unsynced.pop_back()) left.calls.push_front(std::move(one.unsynced.back().call));
  if (one.lent) left.calls.push_back(std::exchange(one.borrowed, {}));
  if (why)
    plan_reconnect(one, was_up);
  else
    one.rested(shared_.now);
  one.reset();
  shared_.timers.drop(one.timer);
  bool const messages_alone = one.of == role::messages && of(role::shared).at != link::state::down;
  if (troubled && (one.of == role::shared || messages_alone)) shared_.note(event_type::disconnected, {}, 0, why, text);
  if (one.of == role::shared && !aside_) {
    if (std::exchange(one.counted, false)) shared_.counters.connected = --shared_.servers_up > 0;
    if (troubled) shared_.trouble = at_address(text.empty() ? why.message() : std::string(text));
    discard(of(role::direct), why);
    discard(of(role::messages), why);
    of(role::direct).failures = of(role::messages).failures = 0;
    of(role::direct).retry_at = of(role::messages).retry_at = shared_.now;
  }
  user_.on_down(one, std::move(left), why, text);
}

// --- another server has taken over ---

void connections::abandon() {
  std::vector<std::uint32_t> before = std::exchange(closing_, {});
  discard(of(role::shared), errc::connection_lost, "another server has taken over");
  std::swap(before, closing_);
  aborting_.insert(aborting_.end(), before.begin(), before.end());
  aside_ = true;
  for (auto& one : links_) one.retry_at = shared_.now;
}

void connections::lead() {
  aside_ = false;
  shared_.trouble = at_address("no connection yet");
  end();
  for (auto& one : links_) one.retry_at = shared_.now;
}

void connections::end() {
  if (of(role::shared).at != link::state::down) discard(of(role::shared), {});
  for (auto& one : links_) one.was_up = false;
}

// --- time ---

void connections::on_timer(link& one) {
  auto const late = [&](instant since, milliseconds limit) { return after(since, limit) <= shared_.now; };
  auto const& settings = shared_.settings;
  if (one.at == link::state::down) return;
  if (one.at != link::state::up) {
    if (late(one.since, settings.connect_timeout) && look_again(one, one.since, settings.connect_timeout)) return;
    if (late(one.since, settings.connect_timeout))
      return failed(one, errc::connect_failed, "no connection in time", true);
  } else if (one.lent && late(one.borrowed.sent, settings.timeout)) {
    return discard(one, errc::timeout, "no answer in time");
  } else if (!one.unanswered.empty() && late(one.unanswered.front().sent, settings.timeout)) {
    if (look_again(one, one.unanswered.front().sent, settings.timeout)) return;
    return discard(one, errc::timeout, "no answer in time");
  } else if (settings.ping_interval.count() > 0 && late(one.heard, settings.ping_interval)) {
    ping(one);
  }
  one.plan(shared_);
}

// The timer itself came late: this process was stopped, or too busy to read, and the answer may stand in the socket.
// There is time to read it; and more, as long as something comes.
bool connections::look_again(link& one, instant since, milliseconds limit) {
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

void connections::ask_role() {
  link& one = of(role::shared);
  auto const asked = [](sent_call const& call) { return call.what == sent_call::type::role; };
  if (one.at != link::state::up || std::any_of(one.unanswered.begin(), one.unanswered.end(), asked)) return;
  command_.clear();
  command_.add("ROLE");
  one.write(shared_, command_, {.what = sent_call::type::role});
  shared_.out->turn = true;
}

void connections::ping(link& one) {
  if (one.lent || one.polled) {
    one.heard = shared_.now;
    return;
  }
  one.polled = true;
  command_.clear();
  command_.add("PING");
  one.write(shared_, command_, {.what = sent_call::type::ping});
  shared_.out->turn = true;
}

// --- answers ---

link* connections::feed(std::uint32_t serial, std::string_view bytes) {
  link* one = find(serial);
  if (!one) return nullptr;
  one->heard = shared_.now;
  shared_.counters.bytes_received += bytes.size();
  one->reader.feed(bytes);
  return one;
}

bool connections::next(link& one, reply& answer) {
  auto const got = one.reader.next(answer);
  if (got != reply_reader::result::malformed) return got == reply_reader::result::reply;
  std::string const problem = one.reader.problem();
  if (one.at == link::state::up)
    discard(one, errc::protocol_error, problem);
  else
    failed(one, errc::protocol_error, problem, false);
  return false;
}

std::optional<sent_call> connections::answered(link& one, reply const& answer) {
  if (one.unanswered.empty()) {
    // Before it closes a connection that it does not want, the server says why.
    auto const why = answer.is_error() ? classify(answer.text) : server_error{errc::protocol_error};
    if (one.at == link::state::up)
      discard(one, why.code, answer.text);
    else
      failed(one, why.code, answer.text, true);
    return {};
  }
  std::optional<sent_call> call(std::move(one.unanswered.front()));
  one.unanswered.pop_front();
  using asked = sent_call::type;
  bool const real = call->what != asked::hello && call->what != asked::check && call->what != asked::kill;
  one.of_use = one.of_use || (real && !answer.is_error());
  switch (call->what) {
    case asked::hello: on_hello(one, *call, answer); return {};
    case asked::check: on_check(*call, answer); return {};
    case asked::ping: one.polled = false; return {};
    case asked::role: on_role(one, answer); return {};
    case asked::tells:
    case asked::asking: return {};
    default: return call;
  }
}

// --- what others know of the calls ---

bool connections::decided(role which) const {
  link const& one = of(which);
  if (which == role::direct && check_refused_) return true;
  // The first failure is followed by an attempt without a pause.
  return one.at == link::state::up || (one.at == link::state::down && one.failures > 1);
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
  for (auto& one : links_) {
    if (one.borrowed.plain == &plain) one.borrowed.plain = nullptr;
    for (auto& sent : one.unanswered)
      if (sent.plain == &plain) sent.plain = nullptr;
    for (auto& kept : one.unsynced)
      if (kept.call.plain == &plain) kept.call.plain = nullptr;
  }
}

void connections::collect(std::vector<operation*>& plain) const {
  if (operation* const borrowed = of(role::direct).borrowed.plain) plain.push_back(borrowed);
  for (auto const& one : links_) {
    for (auto const& sent : one.unanswered)
      if (sent.plain) plain.push_back(sent.plain);
    for (auto const& kept : one.unsynced)
      if (kept.call.plain) plain.push_back(kept.call.plain);
  }
}

bool connections::idle() const {
  return std::all_of(links_.begin(), links_.end(), [](link const& one) {
    return !one.lent && one.unsynced.empty() &&
           std::none_of(one.unanswered.begin(), one.unanswered.end(), [](sent_call const& call) {
             return call.what == sent_call::type::script || call.what == sent_call::type::plain;
           });
  });
}

bool connections::settled() const {
  return std::all_of(links_.begin(), links_.end(), [](link const& one) {
    bool const rests = one.at == link::state::up || one.at == link::state::down;
    return rests && !one.lent && one.unanswered.empty() && one.unsynced.empty() && one.out.empty();
  });
}

}  // namespace latchkey::detail
