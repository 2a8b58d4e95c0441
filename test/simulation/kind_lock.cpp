#include <simulation/kinds.hpp>

namespace latchkey::simulation {

std::unique_ptr<simulated_kind> lock_kind() {
  return std::make_unique<simulated_kind>("lock", detail::reentrant_kind());
}

}  // namespace latchkey::simulation
