#include <base/exit_code.hpp>
#include <cstdio>
#include <deque>
#include <look/locks.hpp>
#include <look/look.hpp>
#include <map>

namespace latchkey::tool {
namespace {

// What no message tells, such as a grant or the end of a lease, is found by looking.
constexpr milliseconds pause{250};

// All but the time that is left, which runs.
std::string mark_of(found_lock lock) {
  lock.remaining = -1;
  return as_json(lock);
}

}  // namespace

int watch(command_line const& line) {
  auto const server = connection_of(line);
  auto const& names = line.operands();
  session listens(server, names.front());
  // In a cluster each name is on a server of its own: of the first one messages are heard, and all are looked at.
  std::size_t const apart = listens.in_cluster() ? names.size() : 1;
  std::deque<session> looks;
  for (std::size_t i = 0; i < apart; ++i) looks.emplace_back(server, names[i]);
  std::vector<std::string> channels;
  for (std::size_t i = 0; i < (listens.in_cluster() ? 1 : names.size()); ++i)
    for (auto& channel : channels_of(names[i])) channels.push_back(std::move(channel));
  listens.listen(channels);
  std::map<std::string, std::string> told;
  for (;;) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto const& name = names[i];
      auto& server_of_it = looks[std::min(i, apart - 1)];
      auto const lock = with_rights("+hgetall +get +pttl", [&] { return look_at(server_of_it, name); });
      auto mark = mark_of(lock);
      if (told[name] == mark) continue;
      told[name] = std::move(mark);
      if (std::puts((line.has("json") ? as_json(lock) : as_text(lock)).c_str()) < 0 || std::fflush(stdout) != 0)
        return internal_error;
    }
    answer message;
    listens.receive(message, pause);
  }
}

}  // namespace latchkey::tool
