#include <machine/shard.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// How long a server that has the names no more is asked to forget what was sent to it.
constexpr milliseconds longest_debt{60'000};
constexpr std::size_t most_before = 8;  // servers that had them

}  // namespace

shard::shard(context& shared, connections::identity as, plain_calls& plain, shard_user& user, bool in_cluster)
    : shared_(shared), as_(std::move(as)), plain_(plain), user_(user), names_(shared, in_cluster) {}

shard::~shard() = default;

std::unique_ptr<session> shard::made(node_address const& at) {
  connections::identity who = as_;
  who.at = at;
  who.in_cluster = names_.in_cluster;
  if (!at.host.empty()) who.address = to_string(at);
  names_.address = who.address;
  return std::make_unique<session>(shared_, names_, std::move(who), *this, user_, plain_);
}

void shard::lead_to(node_address const& at) {
  bool const first = !now_;
  names_.was_master = {};
  names_.refusal.clear();
  if (!now_ || !(now_->where() == at)) names_.replicas.forget_connected();
  names_.in_question = false;
  names_.to_be_succeeded = true;
  retire();
  auto const known =
      std::find_if(before_.begin(), before_.end(), [&](auto const& session) { return session->where() == at; });
  if (known != before_.end()) {
    now_ = std::move(*known);
    before_.erase(known);
    now_->lead();
    names_.address = to_string(at);
  } else {
    now_ = made(at);
  }
  if (before_.size() > most_before) before_.front()->forgive();
  if (direct_wanted_) now_->want_direct();
  shared_.out->turn = true;
  if (!first) user_.moved(names_);
}

void shard::hinder(std::string_view text, error_code const& why, bool transient) {
  if (now_)
    names_.away.unless_known(text);
  else
    names_.away.because(text, why, transient);
}

void shard::retire() {
  if (!now_) return;
  auto leaving = std::move(now_);  // what has to go elsewhere is not to find it
  leaving->retire();
  before_.push_back(std::move(leaving));
}

void shard::pass_debts(session& to) {
  for (auto const& session : before_) to.take_debts(*session);
}

bool shard::missed() const {
  if (!now_ || now_->up()) return false;
  return now_->needed() || (!shared_.closed() && shared_.released.any_lately(names_, shared_.now));
}

bool shard::in_vain() const {
  return now_ && !now_->serves() && (now_->up() || now_->links().of(role::shared).failures > 0);
}

// --- the engine ---

void shard::turn(io_actions& io) {
  for (auto const& session : before_) session->turn_aside(io, longest_debt);
  std::erase_if(before_, [](auto const& session) { return session->paid(); });
  if (now_) now_->turn(io);
}

void shard::snapshot(std::vector<node_stats>& out, std::uint64_t epoch) const {
  auto const row = [&](session const& session) -> node_stats& {
    auto const seen = session.seen();
    auto known = std::find_if(out.begin(), out.end(), [&](auto const& each) { return each.address == seen.address; });
    if (known == out.end()) return out.emplace_back(seen);
    known->connected = known->connected || seen.connected;
    known->links += seen.links;
    known->in_flight += seen.in_flight;
    known->kills_owed += seen.kills_owed;
    return *known;
  };
  if (now_) {
    node_stats& leads = row(*now_);
    leads.held += names_.held;
    leads.epoch = epoch;
  }
  for (auto const& session : before_) row(*session);
}

// --- the direct lane ---

void shard::want_direct() {
  direct_wanted_ = true;
  if (now_)
    now_->want_direct();
  else
    shared_.out->turn = true;
}

// --- plain calls ---

void shard::collect(std::vector<operation*>& calls) {
  for (auto& call : names_.requests.plain()) calls.push_back(&call);
  each([&](session& one) { one.collect(calls); });
}

}  // namespace latchkey::detail
