#include <machine/cluster_scout.hpp>

#include <wire/server_error.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

namespace {

constexpr milliseconds usual_in_cluster{5'000};  // between rounds otherwise, if the settings do not say
constexpr milliseconds patience{300};            // with a node, as long as there are others to ask

}  // namespace

cluster_scout::cluster_scout(context& shared, cluster_seeds whom, cluster_user& user)
    : scout_rounds(shared), whom_(std::move(whom)), user_(user) {}

// --- a turn ---

void cluster_scout::turn(io_actions& io, need wanted) {
  if (turn_begins(wanted)) begin_round();
  if (std::exchange(wanted_open_, false)) {
    serial_ = shared_.next_serial++;
    since_ = shared_.now;
    io.open.push_back({.as = role::scout, .serial = serial_, .to = at_});
  }
  send(serial_, out_, io);
  turn_ends(io, std::min(asking_ ? never : again_at_, overdue_at()));
}

// --- rounds ---

// Whoever answered last is asked first, then a master that any client may choose, and the seeds at the end.
void cluster_scout::begin_round() {
  round_begins();
  auto const add = [this](node_address const& node) {
    if (std::find(round_.begin(), round_.end(), node) == round_.end()) round_.push_back(node);
  };
  auto const turned = [this](std::vector<node_address> all) {
    if (!all.empty()) std::rotate(all.begin(), all.begin() + shared_.random(0, std::ssize(all) - 1), all.end());
    return all;
  };
  if (up_) add(at_);
  for (auto const& node : turned(known_)) add(node);
  for (auto const& node : turned(whom_.nodes)) add(node);
  ask_next();
}

void cluster_scout::ask_next() {
  if (round_.empty()) return round_ends_in_vain();
  node_address next = std::move(round_.front());
  round_.pop_front();
  shared_.out->turn = true;
  if (up_ && next == at_) return ask();
  hang_up();
  at_ = std::move(next);
  wanted_open_ = true;
}

void cluster_scout::ask() {
  since_ = shared_.now;
  awaits_ = true;
  say(out_, "CLUSTER", "NODES");
}

void cluster_scout::failed(error_code const& why, std::string_view text) {
  if (asking_) scout_rounds::failed("node", at_, why, text);
}

void cluster_scout::nobody_knows(error_code const& why, std::string_view text, bool transient) {
  user_.on_no_cluster(why, text, transient);
}

void cluster_scout::hurry(node_address const& whom) {
  std::erase(round_, whom);
  round_.push_front(whom);
  hurry();
}

milliseconds cluster_scout::usual_pause(config const& settings) {
  return settings.scan_interval.count() > 0 ? settings.scan_interval : usual_in_cluster;
}

void cluster_scout::know(std::vector<node_address> masters) { known_ = std::move(masters); }

// --- the connection ---

void cluster_scout::opened(std::uint32_t serial) {
  if (serial != serial_ || up_) return;
  up_ = true;
  awaits_auth_ = !whom_.password.empty();
  if (awaits_auth_) say_auth(out_, whom_.username, whom_.password);
  ask();
}

void cluster_scout::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (serial != serial_ || serial == 0) return;
  serial_ = 0;
  failed(why, text);
}

void cluster_scout::broken(std::uint32_t serial) {
  if (serial != serial_ || serial == 0) return;
  bool const asked = awaits_;
  hang_up();
  closing_.pop_back();  // it has ended by itself
  if (asked) return failed(errc::connect_failed, "it closed the connection");
  hurry();  // it may be the one that has failed
}

void cluster_scout::hang_up() {
  if (serial_ != 0) closing_.push_back(serial_);
  shared_.out->turn = true;
  serial_ = 0;
  up_ = wanted_open_ = awaits_auth_ = awaits_ = false;
  reader_ = reply_reader{};
  out_.clear();
}

void cluster_scout::received(std::uint32_t serial, std::string_view bytes) {
  if (serial != serial_ || serial == 0) return;
  shared_.counters.bytes_received += bytes.size();
  reader_.feed(bytes);
  for (reply answer; serial_ == serial;) {
    auto const got = reader_.next(answer);
    if (got == reply_reader::result::more) return;
    if (got == reply_reader::result::reply) {
      on_reply(answer);
      continue;
    }
    hang_up();
    return failed(errc::protocol_error, "no answer of a server");
  }
}

void cluster_scout::on_reply(reply const& answer) {
  if (std::exchange(awaits_auth_, false)) {
    if (!answer.is_error()) return;
    hang_up();
    return failed(errc::auth_failed, refusal_of_auth(answer.text));
  }
  if (!std::exchange(awaits_, false)) {
    hang_up();
    return failed(errc::protocol_error, "an answer to no question");
  }
  if (answer.is_error()) {
    bool const no_cluster = answer.text.find("cluster support disabled") != std::string::npos;
    bool const refused = answer.text.starts_with("NOPERM");
    return failed(no_cluster ? errc::no_master : refused ? errc::auth_failed : classify(answer.text).code, answer.text);
  }
  auto const seen = read_cluster(answer.text);
  if (std::all_of(seen.masters.begin(), seen.masters.end(), [](auto const& master) { return master.slots.empty(); }))
    return failed(errc::no_master, "it knows of no slots");
  bool const first = known_.empty();
  bool const chosen = std::find(known_.begin(), known_.end(), at_) != known_.end();
  if (error_code const why = user_.on_cluster(at_, seen, since_))
    return failed(why, why == errc::no_master ? "some slots have no node" : "what it knows is out of date");
  if (!asking_) return;
  round_.clear();
  // All clients begin with the same few seeds: the next one asked is any master.
  if (known_.size() > 1 && (first || (!chosen && wanted_ != need::press))) hang_up();
  round_ends(usual_pause(shared_.settings));
}

// --- time ---

// When the one that is asked has taken too long. A server that was stopped takes connections, and says nothing.
instant cluster_scout::overdue_at() const {
  bool const waits = up_ ? awaits_ : serial_ != 0;
  if (!waits) return never;
  milliseconds const most = up_ ? shared_.settings.timeout : shared_.settings.connect_timeout;
  return after(since_, round_.empty() ? most : std::min(most, patience));
}

void cluster_scout::on_timer() {
  shared_.out->turn = true;
  if (overdue_at() > shared_.now) return;
  hang_up();
  failed(errc::connect_failed, "no answer in time");
}

}  // namespace latchkey::detail
