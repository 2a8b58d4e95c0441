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

constexpr milliseconds usual{1'000};  // between rounds otherwise, if the settings do not say
constexpr std::size_t most_sentinels = 32;
constexpr std::string_view announcements = "+switch-master";

}  // namespace

sentinel_scout::sentinel_scout(context& shared, sentinels whom, scout_user& user)
    : shared_(shared), whom_(std::move(whom)), user_(user) {
  timer_.what = timer_node::type::scout;
  timer_.of = this;
  for (auto const& seed : whom_.seeds) {
    if (all_.size() == most_sentinels) break;
    all_.push_back(std::make_unique<line>());
    all_.back()->at = seed;
  }
}

sentinel_scout::~sentinel_scout() { shared_.timers.drop(timer_); }

sentinel_scout::line* sentinel_scout::find(std::uint32_t serial) {
  if (serial == 0) return nullptr;
  if (ear_.serial == serial) return &ear_;
  for (auto const& sentinel : all_)
    if (sentinel->serial == serial) return sentinel.get();
  return nullptr;
}

// --- a turn ---

void sentinel_scout::turn(io_actions& io, need wanted) {
  if (wanted == need::press && wanted_ != need::press && !asking_)
    again_at_ = std::min(again_at_, after(began_, scout_rounds::soon));
  wanted_ = wanted;
  if (wanted_ == need::nothing) {
    shared_.timers.drop(timer_);
    if (std::exchange(asking_, false)) again_at_ = shared_.now;
  } else {
    if (!asking_ && shared_.now >= again_at_) begin_round();
    listen(io);
  }
  for (auto const& sentinel : all_) {
    if (sentinel->wanted) open(*sentinel, io);
    flush(*sentinel, io);
  }
  flush(ear_, io);
  io.close.insert(io.close.end(), closing_.begin(), closing_.end());
  closing_.clear();
  if (wanted_ != need::nothing) plan();
}

void sentinel_scout::open(line& sentinel, io_actions& io) {
  sentinel.wanted = false;
  sentinel.serial = shared_.next_serial++;
  sentinel.up = false;
  sentinel.since = shared_.now;
  io.open.push_back({.as = role::scout, .serial = sentinel.serial, .to = sentinel.at});
}

void sentinel_scout::flush(line& sentinel, io_actions& io) {
  if (sentinel.out.empty()) return;
  shared_.counters.bytes_sent += sentinel.out.size();
  io.write.push_back({sentinel.serial, std::exchange(sentinel.out, {})});
}

// --- rounds ---

void sentinel_scout::begin_round() {
  asking_ = true;
  began_ = shared_.now;
  again_at_ = never;
  why_ = {};
  words_.clear();
  for (auto const& sentinel : all_) sentinel->tried = false;
  ask_next();
}

void sentinel_scout::ask_next() {
  auto const next = std::find_if(all_.begin(), all_.end(), [](auto const& sentinel) { return !sentinel->tried; });
  bool const last = next == all_.end();
  next_one_at_ = last ? never : after(shared_.now, scout_rounds::soon);
  if (!last) return ask(**next);
  if (std::none_of(all_.begin(), all_.end(), [](auto const& sentinel) { return sentinel->in_question; }))
    end_round_in_vain();
}

void sentinel_scout::ask(line& sentinel) {
  sentinel.tried = true;
  shared_.out->turn = true;
  if (std::exchange(sentinel.in_question, true)) return;  // since an earlier round: its time runs on
  sentinel.since = shared_.now;
  if (sentinel.up)
    question(sentinel);
  else if (sentinel.serial == 0)
    sentinel.wanted = true;
}

void sentinel_scout::say(line& sentinel, asked what, std::initializer_list<std::string_view> said) {
  command_.clear();
  for (auto word : said) command_.add(word);
  append_command(sentinel.out, command_);
  sentinel.awaited.push_back(what);
  shared_.out->turn = true;
}

void sentinel_scout::greet(line& sentinel) {
  if (whom_.password.empty()) return;
  if (whom_.username.empty())
    say(sentinel, asked::auth, {"AUTH", whom_.password});
  else
    say(sentinel, asked::auth, {"AUTH", whom_.username, whom_.password});
}

void sentinel_scout::question(line& sentinel) {
  say(sentinel, asked::address, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", whom_.master});
  say(sentinel, asked::epoch, {"SENTINEL", "MASTER", whom_.master});
  if (shared_.settings.sentinels_discovery) say(sentinel, asked::others, {"SENTINEL", "SENTINELS", whom_.master});
}

void sentinel_scout::answered_well(line& sentinel) {
  sentinel.in_question = false;
  if (!asking_) return;  // somebody was quicker
  asking_ = false;
  failures_ = 0;
  next_one_at_ = never;
  milliseconds const given = shared_.settings.scan_interval;
  milliseconds const pause = wanted_ == need::press ? scout_rounds::without_one : given.count() > 0 ? given : usual;
  again_at_ = std::min(again_at_, after(shared_.now, pause));
  auto const mine = std::find_if(all_.begin(), all_.end(), [&](auto const& each) { return each.get() == &sentinel; });
  if (mine != all_.begin()) {
    std::rotate(all_.begin(), mine, mine + 1);
    if (ear_.serial != 0) hang_up(ear_);
    listen_at_ = shared_.now;
  }
}

void sentinel_scout::failed(line& sentinel, error_code const& why, std::string_view text) {
  if (!std::exchange(sentinel.in_question, false) || !asking_) return;
  if (scout_rounds::weight(why) > scout_rounds::weight(why_)) {
    why_ = why;
    words_ = "sentinel " + to_string(sentinel.at) + ": ";
    words_.append(text);
  }
  ask_next();
}

void sentinel_scout::end_round_in_vain() {
  asking_ = false;
  again_at_ = after(shared_.now, shared_.pause(++failures_, scout_rounds::most));
  again_at_ = std::max(again_at_, after(began_, scout_rounds::soon));
  shared_.out->turn = true;
  bool const transient = why_ != errc::no_master && why_ != errc::auth_failed && why_ != errc::tls_failed;
  user_.on_no_claim(why_ ? why_ : error_code(errc::connect_failed), std::string(words_), transient);
}

void sentinel_scout::hurry() {
  again_at_ = std::min(again_at_, std::max(shared_.now, after(began_, scout_rounds::soon)));
  shared_.out->turn = true;
}

void sentinel_scout::distrust() {
  if (asking_) return;
  std::rotate(all_.begin(), all_.begin() + 1, all_.end());
  hurry();
}

// --- lines ---

void sentinel_scout::opened(std::uint32_t serial) {
  line* const sentinel = find(serial);
  if (!sentinel || sentinel->up) return;
  sentinel->up = true;
  sentinel->since = shared_.now;
  greet(*sentinel);
  if (sentinel == &ear_)
    say(ear_, asked::listen, {"SUBSCRIBE", announcements});
  else if (sentinel->in_question)
    question(*sentinel);
}

void sentinel_scout::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  line* const sentinel = find(serial);
  if (!sentinel) return;
  sentinel->serial = 0;
  if (sentinel == &ear_)
    listen_at_ = after(shared_.now, usual);
  else
    failed(*sentinel, why, text);
}

void sentinel_scout::broken(std::uint32_t serial) {
  line* const sentinel = find(serial);
  if (!sentinel) return;
  hang_up(*sentinel);
  closing_.pop_back();  // it has ended by itself
  if (sentinel == &ear_) {
    listen_at_ = after(shared_.now, scout_rounds::soon);
    return hurry();  // it may have told something
  }
  failed(*sentinel, errc::connect_failed, "the sentinel closed the connection");
}

void sentinel_scout::hang_up(line& sentinel) {
  if (sentinel.serial != 0) closing_.push_back(sentinel.serial);
  shared_.out->turn = true;
  sentinel.serial = 0;
  sentinel.up = sentinel.wanted = false;
  sentinel.reader = reply_reader{};
  sentinel.out.clear();
  sentinel.awaited.clear();
}

void sentinel_scout::received(std::uint32_t serial, std::string_view bytes) {
  line* const sentinel = find(serial);
  if (!sentinel) return;
  shared_.counters.bytes_received += bytes.size();
  sentinel->reader.feed(bytes);
  for (reply answer; sentinel->serial == serial;) {
    auto const got = sentinel->reader.next(answer);
    if (got == reply_reader::result::more) return;
    if (got == reply_reader::result::reply) {
      sentinel == &ear_ ? listen_to(answer) : on_reply(*sentinel, answer);
      continue;
    }
    hang_up(*sentinel);
    return failed(*sentinel, errc::protocol_error, "no answer of a sentinel");
  }
}

void sentinel_scout::on_reply(line& sentinel, reply const& answer) {
  if (sentinel.awaited.empty()) {
    hang_up(sentinel);
    return failed(sentinel, errc::protocol_error, "an answer to no question");
  }
  asked const what = sentinel.awaited.front();
  sentinel.awaited.pop_front();
  if (what == asked::others) return learn(sentinel, answer);
  if (what == asked::address) return on_address(sentinel, answer);
  if (what == asked::epoch) return on_epoch(sentinel, answer);
  if (!answer.is_error()) return;
  // A sentinel that does not know AUTH repeats its arguments.
  bool const quotes = answer.text.find("unknown command") != std::string::npos;
  hang_up(sentinel);
  failed(sentinel, errc::auth_failed, quotes ? "it does not know AUTH" : answer.text);
}

bool sentinel_scout::refuses(line& sentinel, reply const& answer) {
  if (names_no_master(answer)) {
    failed(sentinel, errc::no_master, "it knows no master named " + whom_.master);
    return true;
  }
  if (!answer.is_error()) return false;
  bool const refused = answer.text.starts_with("NOPERM");
  failed(sentinel, refused ? error_code(errc::auth_failed) : error_code(classify(answer.text).code), answer.text);
  return true;
}

void sentinel_scout::on_address(line& sentinel, reply const& answer) {
  sentinel.named = {};
  if (refuses(sentinel, answer)) return;
  if (auto const at = read_address(answer)) sentinel.named = *at;
}

void sentinel_scout::on_epoch(line& sentinel, reply const& answer) {
  if (refuses(sentinel, answer)) return;
  auto const epoch = read_epoch(answer);
  if (sentinel.named.host.empty() || !epoch)
    return failed(sentinel, errc::protocol_error, "its answer names no master");
  if (user_.on_claim(sentinel.named, *epoch, read_replicas(answer)) == routes::verdict::stale)
    return failed(sentinel, errc::connect_failed, "it has not heard of the last failover");
  answered_well(sentinel);
}

void sentinel_scout::learn(line const& from, reply const& answer) {
  auto const all = read_sentinels(answer);
  if (answer.is_array() && all.empty() && shared_.settings.check_sentinels_list && !std::exchange(told_alone_, true))
    shared_.note(event_type::warning, {}, 0, {}, "the sentinel " + to_string(from.at) + " knows no other");
  for (auto const& said : all) {
    node_address const at = user_.reached_by(said);
    bool const known = std::any_of(all_.begin(), all_.end(), [&](auto const& sentinel) { return sentinel->at == at; });
    if (known || all_.size() == most_sentinels) continue;
    all_.push_back(std::make_unique<line>());
    all_.back()->at = at;
    all_.back()->tried = true;  // in this round
  }
}

// --- announcements ---

void sentinel_scout::listen(io_actions& io) {
  bool const talks = !all_.empty() && all_.front()->up && !asking_;
  if (ear_.serial != 0 || deaf_ || !talks || shared_.now < listen_at_) return;
  ear_.at = all_.front()->at;
  open(ear_, io);
}

void sentinel_scout::listen_to(reply const& answer) {
  if (answer.is_error()) {
    shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error, "sentinel: " + answer.text);
    deaf_ = true;
    return hang_up(ear_);
  }
  if (!answer.is_array() || answer.elements.size() != 3) return;  // to AUTH
  auto const& said = answer.elements;
  // What was announced before is known by asking once more.
  if (said[0].text == "subscribe") return hurry();
  if (said[0].text == "message" && switches(said[2].text, whom_.master)) hurry();
}

// --- time ---

bool sentinel_scout::overdue(line const& sentinel) const {
  auto const& settings = shared_.settings;
  bool const waits = &sentinel == &ear_ ? sentinel.serial != 0 && !sentinel.up : sentinel.in_question;
  return waits && after(sentinel.since, sentinel.up ? settings.timeout : settings.connect_timeout) <= shared_.now;
}

void sentinel_scout::on_timer() {
  shared_.out->turn = true;
  if (overdue(ear_)) {
    hang_up(ear_);
    listen_at_ = after(shared_.now, usual);
  }
  std::vector<line*> late;
  for (auto const& sentinel : all_)
    if (overdue(*sentinel)) late.push_back(sentinel.get());
  for (line* sentinel : late) {
    hang_up(*sentinel);
    failed(*sentinel, errc::connect_failed, "no answer in time");
  }
  if (asking_ && shared_.now >= next_one_at_) ask_next();
}

void sentinel_scout::plan() {
  auto const& settings = shared_.settings;
  instant next = asking_ ? next_one_at_ : again_at_;
  for (auto const& sentinel : all_)
    if (sentinel->in_question)
      next = std::min(next, after(sentinel->since, sentinel->up ? settings.timeout : settings.connect_timeout));
  if (ear_.serial != 0 && !ear_.up) next = std::min(next, after(ear_.since, settings.connect_timeout));
  if (ear_.serial == 0 && !deaf_ && listen_at_ > shared_.now) next = std::min(next, listen_at_);
  shared_.timers.set(timer_, std::max(next, shared_.now));
}

}  // namespace latchkey::detail
