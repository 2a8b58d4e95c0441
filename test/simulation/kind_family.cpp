#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

namespace latchkey::simulation {

namespace {

class fenced final : public simulated_kind {
 public:
  fenced() : simulated_kind("fenced", detail::fenced_kind()) {}
  bool may_stay(std::string const& key) const override { return key.starts_with("redisson_lock_token"); }
};

}  // namespace

// The relatives of the reentrant lock have its hash.
std::unique_ptr<simulated_kind> fenced_kind() { return std::make_unique<fenced>(); }

std::unique_ptr<simulated_kind> non_reentrant_kind() {
  return std::make_unique<simulated_kind>("non_reentrant", detail::non_reentrant_kind());
}

std::unique_ptr<simulated_kind> spin_kind() { return std::make_unique<simulated_kind>("spin", detail::spin_kind()); }

}  // namespace latchkey::simulation
