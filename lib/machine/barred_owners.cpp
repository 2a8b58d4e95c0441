#include <machine/barred_owners.hpp>
#include <machine/name_machine.hpp>

namespace latchkey::detail {

std::string barred_owners::key_of(owner_state const& state) {
  std::string made(state.of.name());  // kinds share data
  return made.append(1, '\0').append(std::to_string(state.field));
}

void barred_owners::remove(std::string const& key) {
  auto const found = all_.find(key);
  if (found != all_.end() && --found->second == 0) all_.erase(found);
}

}  // namespace latchkey::detail
