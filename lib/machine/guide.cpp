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

void quarantine(context& shared, home& at) {
  milliseconds const lasting = shared.settings.failover_quarantine;
  if (lasting.count() == 0) return;
  at.quarantined_until = after(shared.now, lasting);
  shared.note(event_type::quarantined, {}, 0, {}, "nothing new is asked for until it is over", lasting);
}

}  // namespace latchkey::detail
