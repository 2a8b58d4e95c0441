#include <machine/sentinel_scout.hpp>
#include <wire/sentinel_answer.hpp>
#include <wire/server_error.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

// Of the same epoch two addresses are two names of one server, or that of one that has moved: witnesses who disagree
// about the server itself have different epochs.
routes::verdict routes::claim(node_address at, std::uint64_t epoch, bool works) {
  if (now_ && epoch < now_->epoch) return verdict::stale;
  bool const same = now_ && (now_->at == at || (works && epoch == now_->epoch));
  if (same) {
    bool const later = epoch > now_->epoch;
    now_->epoch = epoch;
    return later ? verdict::again : verdict::known;
  }
  now_ = route{std::move(at), epoch};
  return verdict::changes;
}

namespace {

constexpr milliseconds usual{1'000};      // between rounds otherwise, if the settings do not say
constexpr milliseconds to_listen{1'000};  // between two openings of an ear, at least
constexpr std::size_t most_sentinels = 32;

}  // namespace

sentinel_scout::sentinel_scout(context& shared, sentinels whom, scout_user& user)
    : scout_rounds(shared), whom_(std::move(whom)), user_(user) {
  for (auto const& seed : whom_.seeds) {
    if (all_.size() == most_sentinels) break;
    all_.push_back(std::make_unique<sentinel>());
    all_.back()->at = seed;
  }
}

sentinel_scout::found sentinel_scout::find(std::uint32_t serial) {
  for (auto const& one : all_)
    for (connection* by : {&one->questions, &one->ear})
      if (serial != 0 && by->serial == serial) return {one.get(), by};
  return {};
}

// --- a turn ---

void sentinel_scout::turn(io_actions& io, need wanted) {
  if (turn_begins(wanted)) begin_round();
  for (auto const& one : all_) {
    if (std::exchange(one->wanted, false)) open(*one, one->questions, io);
    if (listens() && one->ear.serial == 0 && shared_.now >= one->listen_at) {
      one->listen_at = after(shared_.now, to_listen);
      open(*one, one->ear, io);
    }
    for (connection* by : {&one->questions, &one->ear}) send(by->serial, by->out, io);
  }
  turn_ends(io, next_time());
}

void sentinel_scout::open(sentinel const& one, connection& by, io_actions& io) {
  by.serial = shared_.next_serial++;
  by.up = false;
  by.since = shared_.now;
  io.open.push_back({.as = role::scout, .serial = by.serial, .to = one.at});
}

// --- rounds ---

void sentinel_scout::begin_round() {
  round_begins();
  for (auto const& one : all_) one->tried = false;
  ask_next();
}

void sentinel_scout::ask_next() {
  auto const next = std::find_if(all_.begin(), all_.end(), [](auto const& one) { return !one->tried; });
  bool const last = next == all_.end();
  next_one_at_ = last ? never : after(shared_.now, soon);
  if (!last) return ask(**next);
  if (std::none_of(all_.begin(), all_.end(), [](auto const& one) { return one->in_question; })) round_ends_in_vain();
}

void sentinel_scout::ask(sentinel& one) {
  one.tried = true;
  shared_.out->turn = true;
  if (std::exchange(one.in_question, true)) return;  // since an earlier round: its time runs on
  one.questions.since = shared_.now;
  if (one.questions.up)
    question(one);
  else if (one.questions.serial == 0)
    one.wanted = true;
}

template <class... Words>
void sentinel_scout::ask(connection& by, asked what, Words const&... said) {
  say(by.out, said...);
  by.awaited.push_back(what);
}

void sentinel_scout::greet(connection& by) {
  if (whom_.password.empty()) return;
  say_auth(by.out, whom_.username, whom_.password);
  by.awaited.push_back(asked::auth);
}

void sentinel_scout::question(sentinel& one) {
  ask(one.questions, asked::address, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", whom_.master);
  ask(one.questions, asked::epoch, "SENTINEL", "MASTER", whom_.master);
  if (shared_.settings.sentinels_discovery) ask(one.questions, asked::others, "SENTINEL", "SENTINELS", whom_.master);
}

void sentinel_scout::answered_well(sentinel& one) {
  one.in_question = false;
  if (!asking_) return;  // somebody was quicker
  next_one_at_ = never;
  milliseconds const given = shared_.settings.scan_interval;
  round_ends(given.count() > 0 ? given : usual);
  auto const mine = std::find_if(all_.begin(), all_.end(), [&](auto const& each) { return each.get() == &one; });
  std::rotate(all_.begin(), mine, all_.end());  // behind it those that did not answer
}

void sentinel_scout::failed(sentinel& one, error_code const& why, std::string_view text) {
  if (!std::exchange(one.in_question, false) || !asking_) return;
  scout_rounds::failed("sentinel", one.at, why, text);
}

void sentinel_scout::nobody_knows(error_code const& why, std::string_view text, bool transient) {
  user_.on_no_claim(why, text, transient);
}

void sentinel_scout::distrust() {
  if (asking_) return;
  std::rotate(all_.begin(), all_.begin() + 1, all_.end());
  hurry();
}

// --- connections ---

void sentinel_scout::opened(std::uint32_t serial) {
  auto const [one, by] = find(serial);
  if (!one || by->up) return;
  by->up = true;
  by->since = shared_.now;
  greet(*by);
  if (by == &one->ear) {
    ask(*by, asked::listen, "SUBSCRIBE", switched);
    ask(*by, asked::listen, "SUBSCRIBE", promoted);
  } else if (one->in_question) {
    question(*one);
  }
}

void sentinel_scout::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  auto const [one, by] = find(serial);
  if (!one) return;
  by->serial = 0;
  if (by == &one->questions) failed(*one, why, text);
}

void sentinel_scout::broken(std::uint32_t serial) {
  auto const [one, by] = find(serial);
  if (!one) return;
  hang_up(*by);
  closing_.pop_back();  // it has ended by itself
  if (by == &one->questions) failed(*one, errc::connect_failed, "the sentinel closed the connection");
}

void sentinel_scout::hang_up(connection& by) {
  if (by.serial != 0) closing_.push_back(by.serial);
  shared_.out->turn = true;
  by = {};
}

void sentinel_scout::received(std::uint32_t serial, std::string_view bytes) {
  auto const [one, by] = find(serial);
  if (!one) return;
  shared_.counters.bytes_received += bytes.size();
  by->reader.feed(bytes);
  for (reply answer; by->serial == serial;) {
    auto const got = by->reader.next(answer);
    if (got == reply_reader::result::more) return;
    if (got == reply_reader::result::reply) {
      by == &one->ear ? hear(*one, answer) : on_reply(*one, answer);
      continue;
    }
    hang_up(*by);
    if (by == &one->questions) failed(*one, errc::protocol_error, "no answer of a sentinel");
  }
}

void sentinel_scout::on_reply(sentinel& one, reply const& answer) {
  auto& awaited = one.questions.awaited;
  if (awaited.empty()) {
    hang_up(one.questions);
    return failed(one, errc::protocol_error, "an answer to no question");
  }
  asked const what = awaited.front();
  awaited.pop_front();
  if (what == asked::others) return learn(one, answer);
  if (what == asked::address) return on_address(one, answer);
  if (what == asked::epoch) return on_epoch(one, answer);
  if (!answer.is_error()) return;
  hang_up(one.questions);
  failed(one, errc::auth_failed, refusal_of_auth(answer.text));
}

bool sentinel_scout::refuses(sentinel& one, reply const& answer) {
  if (names_no_master(answer)) {
    failed(one, errc::no_master, "it knows no master named " + whom_.master);
    return true;
  }
  if (!answer.is_error()) return false;
  bool const refused = answer.text.starts_with("NOPERM");
  failed(one, refused ? error_code(errc::auth_failed) : error_code(classify(answer.text).code), answer.text);
  return true;
}

void sentinel_scout::on_address(sentinel& one, reply const& answer) {
  one.named = {};
  if (refuses(one, answer)) return;
  if (auto const at = read_address(answer)) one.named = *at;
}

void sentinel_scout::on_epoch(sentinel& one, reply const& answer) {
  if (refuses(one, answer)) return;
  auto const epoch = read_epoch(answer);
  if (one.named.host.empty() || !epoch) return failed(one, errc::protocol_error, "its answer names no master");
  auto const verdict = user_.on_claim(one.named, *epoch, read_replicas(answer), one.questions.since);
  if (verdict == routes::verdict::stale)
    return failed(one, errc::connect_failed, "it has not heard of the last failover");
  answered_well(one);
  // It names the one that is missing: another may know of its successor.
  bool const no_help = verdict == routes::verdict::known && wanted_ == need::press;
  if (no_help && all_.front().get() == &one) std::rotate(all_.begin(), all_.begin() + 1, all_.end());
}

void sentinel_scout::learn(sentinel const& from, reply const& answer) {
  auto const all = read_sentinels(answer);
  if (answer.is_array() && all.empty() && shared_.settings.check_sentinels_list && !std::exchange(told_alone_, true))
    shared_.note(event_type::warning, {}, 0, {}, "the sentinel " + to_string(from.at) + " knows no other");
  for (auto const& said : all) {
    node_address const at = user_.reached_by(said);
    bool const known = std::any_of(all_.begin(), all_.end(), [&](auto const& one) { return one->at == at; });
    if (known || all_.size() == most_sentinels) continue;
    all_.push_back(std::make_unique<sentinel>());
    all_.back()->at = at;
    all_.back()->tried = true;  // in this round
  }
}

// --- announcements ---

// Not while nobody has an answer that can be used: that is asked for less often each time.
bool sentinel_scout::listens() const { return wanted_ != need::nothing && !asking_ && failures_ == 0; }

// Others may hear of it a moment later, also the one that is being asked: its answer ends no round any more.
void sentinel_scout::ask_who_told(sentinel const& one) {
  auto const told = std::find_if(all_.begin(), all_.end(), [&](auto const& each) { return each.get() == &one; });
  std::rotate(all_.begin(), told, told + 1);
  asking_ = false;
  hurry();
}

void sentinel_scout::hear(sentinel& one, reply const& answer) {
  auto const& said = answer.elements;
  bool const heard = answer.is_array() && said.size() == 3;
  if (heard && said[0].text == "message") {
    if (switches(said[1].text, said[2].text, whom_.master)) ask_who_told(one);
    return;
  }
  if (!one.ear.awaited.empty()) one.ear.awaited.pop_front();
  if (heard) return hurry();  // what was announced before is known by asking once more
  // A user's rights may cover `switched` alone.
  if (!answer.is_error() || one.ear.awaited.empty()) return;
  hang_up(one.ear);
  if (!answer.text.starts_with("NOPERM")) return;
  one.listen_at = never;
  shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error,
               "sentinel " + to_string(one.at) + ": " + answer.text);
}

// --- time ---

// Until when that must have come which is waited for on this connection.
instant sentinel_scout::deadline(sentinel const& one, connection const& by) const {
  bool const waits = &by == &one.ear ? by.serial != 0 && !by.up : one.in_question;
  if (!waits) return never;
  return after(by.since, by.up ? shared_.settings.timeout : shared_.settings.connect_timeout);
}

void sentinel_scout::on_timer() {
  shared_.out->turn = true;
  std::vector<sentinel*> late;
  for (auto const& one : all_) {
    if (deadline(*one, one->ear) <= shared_.now) hang_up(one->ear);
    if (deadline(*one, one->questions) <= shared_.now) late.push_back(one.get());
  }
  for (sentinel* one : late) {
    hang_up(one->questions);
    failed(*one, errc::connect_failed, "no answer in time");
  }
  if (asking_ && shared_.now >= next_one_at_) ask_next();
}

instant sentinel_scout::next_time() const {
  instant next = asking_ ? next_one_at_ : again_at_;
  for (auto const& one : all_) {
    next = std::min({next, deadline(*one, one->questions), deadline(*one, one->ear)});
    if (listens() && one->ear.serial == 0) next = std::min(next, one->listen_at);
  }
  return next;
}

}  // namespace latchkey::detail
