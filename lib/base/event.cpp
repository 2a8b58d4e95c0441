#include <latchkey/event.hpp>

namespace latchkey {

std::string_view to_string(event_type type) noexcept {
  switch (type) {
    case event_type::attempt: return "attempt";
    case event_type::waiting: return "waiting";
    case event_type::granted: return "granted";
    case event_type::handed_off: return "handed_off";
    case event_type::gave_up: return "gave_up";
    case event_type::released: return "released";
    case event_type::at_risk: return "at_risk";
    case event_type::lost: return "lost";
    case event_type::max_hold_reached: return "max_hold_reached";
    case event_type::abandoned: return "abandoned";
    case event_type::connected: return "connected";
    case event_type::disconnected: return "disconnected";
    case event_type::connect_failed: return "connect_failed";
    case event_type::kill_refused: return "kill_refused";
    case event_type::lane_unchecked: return "lane_unchecked";
    case event_type::subscribe_refused: return "subscribe_refused";
    case event_type::publish_refused: return "publish_refused";
    case event_type::no_time_to_live: return "no_time_to_live";
    case event_type::unlock_failed: return "unlock_failed";
    case event_type::left_to_lease: return "left_to_lease";
    case event_type::holder_thread_ended: return "holder_thread_ended";
    case event_type::permit_lost: return "permit_lost";
    case event_type::callback_failed: return "callback_failed";
    case event_type::tls_reloaded: return "tls_reloaded";
    case event_type::quarantined: return "quarantined";
    case event_type::unsynced: return "unsynced";
    case event_type::topology_changed: return "topology_changed";
    case event_type::unfenced: return "unfenced";
    case event_type::deposed_answer: return "deposed_answer";
    case event_type::redirected: return "redirected";
    case event_type::slot_uncovered: return "slot_uncovered";
    case event_type::warning: return "warning";
  }
  return "unknown";
}

}  // namespace latchkey
