#include <base/exit_code.hpp>
#include <cstdio>
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
  session looks(server), listens(server);
  command subscribe{"SUBSCRIBE"};
  for (auto const& name : line.operands())
    for (auto const& channel : channels_of(name)) subscribe.push_back(channel);
  listens.send(subscribe);
  std::map<std::string, std::string> told;
  for (;;) {
    for (auto const& name : line.operands()) {
      auto const lock = with_rights("+hgetall +get +pttl", [&] { return look_at(looks, name); });
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
