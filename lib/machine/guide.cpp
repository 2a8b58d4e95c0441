#include <machine/guide.hpp>

#include <machine/context.hpp>

#include <utility>

namespace latchkey::detail {

node_address reached_by(context const& shared, node_address const& at) {
  auto const& map = shared.settings.nat_map;
  if (!map) return at;
  auto [host, port] = map(at.host, at.port);
  return {std::move(host), port};
}

void note_switch(context& shared, bool first, std::string_view text) {
  shared.counters.switches += !first;
  shared.note(event_type::topology_changed, {}, 0, {}, text);
}

bool releases_at_stake(context const& shared) { return !shared.closed() && !shared.released.empty(); }

void confirm_releases(context& shared, home const& at, instant asked) {
  if (at.was_master.at <= asked) shared.released.confirm(at, at.was_master.asked);
}

void quarantine(context& shared, home& at) {
  milliseconds const lasting = shared.settings.failover_quarantine;
  if (lasting.count() == 0) return;
  at.quarantined_until = after(shared.now, lasting);
  shared.note(event_type::quarantined, {}, 0, {}, "nothing new is asked for until it is over", lasting);
}

}  // namespace latchkey::detail
