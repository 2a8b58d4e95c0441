#include <interop/support/kinds.hpp>
#include <interop/support/peer.hpp>
#include <support/redis_server.hpp>

namespace latchkey::test {

std::vector<interop_kind> const& interop_kinds() {
  static std::vector<interop_kind> const kinds{
      {"lock", {"lock"}},
  };
  return kinds;
}

std::string names_for(interop_kind const& kind, std::string const& base) {
  auto const first = base.empty() ? new_name() : base;
  std::vector<std::string> names;
  for (int i = 0; i < kind.names; ++i) names.push_back(i == 0 ? first : first + "-" + std::to_string(i));
  return joined(names);
}

}  // namespace latchkey::test
