#include <machine/routes.hpp>

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

}  // namespace latchkey::detail
