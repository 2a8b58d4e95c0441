#include <machine/fleet.hpp>

#include <machine/outbox.hpp>
#include <machine/recent_releases.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// How long a server that has the names no more is asked to forget what was sent to it.
constexpr milliseconds longest_debt{60'000};
constexpr std::size_t most_before = 8;  // servers that had them

}  // namespace

fleet::fleet(context& shared, topology given, fleet_user& user)
    : shared_(shared), user_(user), as_(std::move(given.as)) {
  if (given.whom.seeds.empty()) {
    routes_.fix({});
    now_ = made({});
    return;
  }
  shared_.secret = as_.password;
  shared_.trouble = "no sentinel has been asked yet";
  scout_ = std::make_unique<sentinel_scout>(shared_, std::move(given.whom), static_cast<scout_user&>(*this));
}

fleet::~fleet() = default;

std::unique_ptr<session> fleet::made(node_address const& at) {
  connections::identity who = as_;
  who.at = at;
  if (!at.host.empty()) who.address = to_string(at);
  session_user& me = *this;
  return std::make_unique<session>(shared_, std::move(who), me, plain_);
}

// --- the engine ---

void fleet::turn(io_actions& io) {
  if (scout_) scout_->turn(io, need());
  if (!before_.empty()) pass_by_old_sessions(io);
  if (now_) now_->turn(io);
}

sentinel_scout::need fleet::need() const {
  using need = sentinel_scout::need;
  if (now_ && now_->up()) return need::watch;
  // What was released there lately may come back elsewhere.
  bool const released = now_ && !shared_.closed() && shared_.released->any(shared_.now);
  bool const needed = now_ ? now_->needed() : user_.needs_server();
  return released || needed ? need::press : need::nothing;
}

void fleet::pass_by_old_sessions(io_actions& io) {
  for (auto const& one : before_) one->turn_aside(io, longest_debt);
  std::erase_if(before_, [](auto const& one) { return one->paid(); });
}

void fleet::opened(std::uint32_t serial) {
  if (now_) now_->links().opened(serial);
  for (auto const& one : before_) one->links().opened(serial);
  if (scout_) scout_->opened(serial);
}

void fleet::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  if (now_) now_->links().open_failed(serial, why, text);
  for (auto const& one : before_) one->links().open_failed(serial, why, text);
  if (scout_) scout_->open_failed(serial, why, text);
}

void fleet::received(std::uint32_t serial, std::string_view bytes) {
  if (now_) now_->received(serial, bytes);
  for (auto const& one : before_) one->received(serial, bytes);
  if (scout_) scout_->received(serial, bytes);
}

void fleet::broken(std::uint32_t serial, error_code const& why) {
  if (now_) now_->links().broken(serial, why);
  for (auto const& one : before_) one->links().broken(serial, why);
  if (scout_) scout_->broken(serial);
}

void fleet::on_link_timer(link& one) {
  if (now_ && now_->links().has(one)) return now_->links().on_timer(one);
  for (auto const& old : before_)
    if (old->links().has(one)) return old->links().on_timer(one);
}

// --- the direct lane ---

void fleet::want_direct() {
  direct_wanted_ = true;
  if (now_)
    now_->want_direct();
  else
    shared_.out->turn = true;
}

void fleet::lane_failed(std::uint32_t serial, error_code const& why) {
  if (now_) now_->lane_failed(serial, why);
}

// --- plain calls ---

void fleet::connect_begins() {
  plain_.connect_begins();
  want_direct();
}

void fleet::forget(operation& call) {
  if (now_) now_->forget(call);
  for (auto const& one : before_) one->forget(call);
}

void fleet::forget_plain_calls(error_code const& why) {
  std::vector<operation*> calls;
  plain_.collect(calls);
  if (now_) now_->collect(calls);
  for (auto const& one : before_) one->collect(calls);
  for (operation* call : calls) plain_.expire(*call, why);
}

bool fleet::quiet() const { return now_ ? now_->quiet() : shared_.requests->empty(); }

// --- what the session that leads has to say ---

void fleet::trouble(error_code const& why, std::string_view text, bool transient) {
  user_.trouble(why, text, transient);
}

void fleet::shaken() {
  if (scout_) scout_->hurry();
}

void fleet::misled() {
  if (scout_) scout_->distrust();
}

// --- what the scout has to say ---

node_address fleet::reached_by(node_address const& at) const {
  auto const& map = shared_.settings.nat_map;
  if (!map) return at;
  auto [host, port] = map(at.host, at.port);
  return {std::move(host), port};
}

routes::verdict fleet::on_claim(node_address const& at, std::uint64_t epoch, std::size_t replicas) {
  node_address const where = reached_by(at);
  std::string const before = routes_.empty() ? std::string() : to_string(routes_.now().at);
  auto const verdict = routes_.claim(where, epoch, now_ && now_->up());
  if (verdict != routes::verdict::stale) shared_.replicas.named = replicas;
  if (verdict == routes::verdict::known && now_) now_->links().ask_role();
  if (verdict != routes::verdict::changes) return verdict;
  std::string text = "slots 0-16383: ";
  if (!before.empty()) text += "from " + before + ' ';
  text += "to " + to_string(where) + ", epoch " + std::to_string(epoch);
  shared_.note(event_type::topology_changed, {}, 0, {}, text);
  if (!before.empty() || epoch > 0) quarantine();
  lead_to(where);
  return verdict;
}

// Of a failover that was before its time a client can only know that there was one.
void fleet::quarantine() {
  milliseconds const lasting = shared_.settings.failover_quarantine;
  if (lasting.count() == 0) return;
  shared_.quarantined_until = after(shared_.now, lasting);
  shared_.note(event_type::quarantined, {}, 0, {}, "nothing new is asked for until it is over", lasting);
}

// What was sent to the server before is never believed: it goes again, to the new one. docs/topologies.md says why that
// need not wait for what still runs there.
void fleet::lead_to(node_address const& at) {
  bool const first = !now_;
  if (now_) {
    now_->retire();
    before_.push_back(std::move(now_));
  }
  auto const known =
      std::find_if(before_.begin(), before_.end(), [&](auto const& one) { return one->links().where() == at; });
  if (known != before_.end()) {
    now_ = std::move(*known);
    before_.erase(known);
    now_->lead();
  } else {
    now_ = made(at);
  }
  if (before_.size() > most_before) before_.front()->forgive();
  if (direct_wanted_) now_->want_direct();
  shared_.out->turn = true;
  if (!first) user_.moved();
}

void fleet::on_no_claim(error_code const& why, std::string_view text, bool transient) {
  shared_.note(event_type::connect_failed, {}, 0, why, text);
  if (now_ && now_->up()) return;  // it serves as before
  shared_.trouble = text;
  if (!now_) user_.trouble(why, text, transient);
}

}  // namespace latchkey::detail
