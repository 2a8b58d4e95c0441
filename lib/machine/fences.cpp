#include <machine/fences.hpp>

#include <machine/name_machine.hpp>

namespace latchkey::detail {

std::string fences::key_of(owner_state const& one) {
  std::string made(one.of.which().rules().name);
  made.append(1, '\0').append(one.of.name()).append(1, '\0');
  return made.append(std::to_string(one.field));
}

void fences::remove(std::string const& key) {
  auto const found = all_.find(key);
  if (found != all_.end() && --found->second == 0) all_.erase(found);
}

}  // namespace latchkey::detail
