#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

namespace latchkey::simulation {

// Two members that one script call takes together, and one on another server.
std::unique_ptr<simulated_kind> multi_kind() {
  auto made = std::make_unique<simulated_kind>("multi", detail::reentrant_kind());
  made->places = {0, 0, 1};
  return made;
}

// Three servers, of which two make the lock.
std::unique_ptr<simulated_kind> red_kind() {
  auto made = std::make_unique<simulated_kind>("red", detail::reentrant_kind());
  made->places = {0, 1, 2};
  made->majority = true;
  return made;
}

}  // namespace latchkey::simulation
