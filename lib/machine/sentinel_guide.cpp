#include <machine/sentinel_guide.hpp>

#include <string>

namespace latchkey::detail {

sentinel_guide::sentinel_guide(context& shared, sentinels whom, guided& servers)
    : shared_(shared), servers_(servers), scout_(shared, std::move(whom), static_cast<scout_user&>(*this)) {}

sentinel_scout::need sentinel_guide::need() const {
  using need = sentinel_scout::need;
  shard const& shard = only();
  if (shard.up()) return need::watch;
  bool const missed = shard.now() ? shard.missed() : servers_.needs_any_server();
  if (missed) return need::press;
  return releases_at_stake(shared_) ? need::watch : need::nothing;
}

routes::verdict sentinel_guide::on_claim(node_address const& at, std::uint64_t epoch, std::size_t replicas,
                                         instant asked) {
  shard& shard = only();
  shared_.forget_ended_releases();
  node_address const where = reached_by(at);
  std::string const before = routes_.empty() ? std::string() : to_string(routes_.now().at);
  auto const verdict = routes_.claim(where, epoch, shard.up());
  if (verdict != routes::verdict::stale) {
    shard.names().replicas.set_named(replicas, shared_.now);
    shard.expect_successor(true);
  }
  if (verdict == routes::verdict::known && shard.now()) {
    confirm_releases(shared_, shard.names(), asked);
    shard.now()->links().ask_role();
  }
  if (verdict != routes::verdict::changes && verdict != routes::verdict::again) return verdict;
  std::string text = "slots 0-16383: ";
  if (!before.empty()) text += "from " + before + ' ';
  text += "to " + to_string(where) + ", epoch " + std::to_string(epoch);
  note_switch(shared_, before.empty(), text);
  if (!before.empty() || epoch > 0) quarantine(shared_, shard.names());
  shard.lead_to(where);
  return verdict;
}

void sentinel_guide::on_no_claim(error_code const& why, std::string_view text, bool transient) {
  shared_.forget_ended_releases();
  shared_.note(event_type::connect_failed, {}, 0, why, text);
  if (only().up()) return;  // it serves as before
  only().expect_successor(false);
  only().hinder(text, why, transient);
  if (!only().now()) servers_.trouble(only(), why, text, transient);
}

}  // namespace latchkey::detail
