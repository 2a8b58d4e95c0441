#include <engine/announce.hpp>

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace latchkey::detail {

namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

std::string connection_name(std::string_view pattern, std::string_view id) {
  std::pair<std::string_view, std::string> const words[] = {{"{id}", std::string(id)},
                                                            {"{pid}", std::to_string(::getpid())},
                                                            {"{host}", host_name()},
                                                            {"{program}", program_invocation_short_name}};
  std::string made;
  while (!pattern.empty()) {
    std::size_t taken = 1;
    std::string_view said = pattern.substr(0, 1);
    for (auto const& [word, meaning] : words)
      if (pattern.starts_with(word)) {
        taken = word.size();
        said = meaning;
      }
    made += said;
    pattern.remove_prefix(taken);
  }
  for (char& c : made)
    if (c < '!' || c > '~') c = '_';
  return made;
}

}  // namespace latchkey::detail
