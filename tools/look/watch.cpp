#include <base/exit_code.hpp>
#include <cstdio>
#include <deque>
#include <look/locks.hpp>
#include <look/restarts.hpp>
#include <map>
#include <memory>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

// What no message tells, such as a grant or the end of a lease, is found by looking.
constexpr milliseconds pause{250};

// All but the time that is left, which runs.
std::string mark_of(found_lock lock) {
  lock.remaining = -1;
  return as_json(lock);
}

// In a cluster each name is on a server of its own: of the first one messages are heard, and all are looked at.
class lookouts {
 public:
  lookouts(connection const& server, std::vector<std::string> const& names) : listens_(server, names.front()) {
    std::size_t const heard = listens_.in_cluster() ? 1 : names.size();
    std::size_t const apart = listens_.in_cluster() ? names.size() : 1;
    for (std::size_t i = 0; i < apart; ++i) looks_.emplace_back(server, names[i]).tell_of_replica();
    std::vector<std::string> channels;
    for (std::size_t i = 0; i < heard; ++i)
      for (auto& channel : channels_of(names[i])) channels.push_back(std::move(channel));
    listens_.listen(channels);
  }
  session& of(std::size_t name) { return looks_[std::min(name, looks_.size() - 1)]; }
  // Something was heard, at least that it listens.
  bool rest() {
    answer message;
    return listens_.receive(message, pause) && message.what != answer::type::error;
  }

 private:
  session listens_;
  std::deque<session> looks_;
};

}  // namespace

int watch(command_line const& line) {
  auto const server = connection_of(line);
  auto const& names = line.operands();
  std::unique_ptr<lookouts> to;
  restarts gone(forever);
  std::map<std::string, std::string> told;
  for (;;) try {
      if (!to) to = std::make_unique<lookouts>(server, names);
      for (std::size_t i = 0; i < names.size(); ++i) {
        auto const& name = names[i];
        auto const lock = with_rights("+hgetall +getrange +strlen +pttl", [&] { return look_at(to->of(i), name); });
        gone.heard();
        auto mark = mark_of(lock);
        if (told[name] == mark) continue;
        told[name] = std::move(mark);
        if (std::puts((line.has("json") ? as_json(lock) : as_text(lock)).c_str()) < 0 || std::fflush(stdout) != 0)
          return internal_error;
      }
      if (to->rest()) gone.back();
    } catch (failure const& why) {
      to.reset();
      gone.away(why);
    }
}

}  // namespace latchkey::tool
