#include <interop/support/kinds.hpp>
#include <interop/support/peer.hpp>
#include <support/redis_server.hpp>

#include <cstdlib>

namespace latchkey::test {

namespace {

// For work on one kind: LATCHKEY_INTEROP_ONLY names the kinds, separated by commas.
std::vector<interop_kind> wanted(std::vector<interop_kind> all) {
  char const* const only = std::getenv("LATCHKEY_INTEROP_ONLY");
  std::erase_if(all, [&](interop_kind const& one) {
    return only != nullptr && ("," + std::string(only) + ",").find("," + one.name + ",") == std::string::npos;
  });
  return all;
}

}  // namespace

std::vector<interop_kind> const& interop_kinds() {
  static std::vector<interop_kind> const kinds = wanted({
      {.name = "lock", .rivals = {"lock"}},
      {.name = "fair_lock", .rivals = {"fair_lock"}},
      {.name = "non_reentrant_lock", .rivals = {"non_reentrant_lock", "lock"}, .reentrant = false},
      {.name = "spin_lock", .rivals = {"spin_lock", "lock"}, .messages = false},
      {.name = "fenced_lock", .rivals = {"fenced_lock", "lock"}},
      {.name = "read_lock", .rivals = {"write_lock"}},
      {.name = "write_lock", .rivals = {"write_lock", "read_lock"}, .longest_lease = 60'000},
      {.name = "multi_lock", .rivals = {"multi_lock"}, .names = 3, .asks = false},
      {.name = "red_lock", .rivals = {"red_lock"}, .names = 3, .asks = false, .messages = false},
  });
  return kinds;
}

std::string names_for(interop_kind const& kind, std::string const& base) {
  auto const first = base.empty() ? new_name() : base;
  std::vector<std::string> names;
  for (int i = 0; i < kind.names; ++i) names.push_back(i == 0 ? first : first + "-" + std::to_string(i));
  return joined(names);
}

std::vector<std::string> const& odd_names() {
  static std::vector<std::string> const names{"two words, and a comma",
                                              "замок 鍵 🔑",
                                              "{tag}:rest",
                                              "before{tag}after",
                                              "open{only",
                                              "close}only",
                                              "empty{}tag",
                                              "%41+&=?",
                                              "a\tb\r\nc",
                                              std::string(1024, 'n')};
  return names;
}

}  // namespace latchkey::test
