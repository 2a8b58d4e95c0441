#include <boost/json.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/json.hpp>
#include <base/say.hpp>
#include <chrono>
#include <cstdio>
#include <look/restarts.hpp>
#include <look/session.hpp>
#include <look/topology.hpp>
#include <memory>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

using clock = std::chrono::steady_clock;

// A release tells those who listen; an end by time, and a message that was lost, are found by looking.
constexpr milliseconds longest_pause{500};

void print_json(std::string const& name, bool held, milliseconds waited) {
  std::puts(json_text(boost::json::object{{"schema", 1}, {"name", name}, {"held", held}, {"waited_ms", waited.count()}})
                .c_str());
}

// One connection asks, and one listens.
struct lookout {
  lookout(connection const& server, place const& where, std::string const& name)
      : looks(server, where), listens(server, where) {
    looks.tell_of_replica();
    listens.listen(channels_of(name));
  }
  session looks, listens;
};

}  // namespace

int wait(command_line const& line) {
  auto const limit = line.duration("wait", forever, milliseconds(0));
  auto const& name = line.operands().front();
  auto server = connection_of(line);
  server.settings.connect_timeout = connect_limit(limit);
  auto const began = clock::now();
  std::unique_ptr<lookout> to;
  restarts gone(limit);
  bool told = false;
  for (;;) try {
      if (!to) to = std::make_unique<lookout>(server, place_of(server, name), name);
      auto const left = with_rights("+pttl", [&] { return to->looks.ask_number({"PTTL", name}); });
      gone.heard();
      auto const passed = std::chrono::duration_cast<milliseconds>(clock::now() - began);
      bool const free = left == -2;
      if (line.has("json") && (free || passed >= limit)) print_json(name, !free, passed);
      if (free) return yes;
      if (passed >= limit) throw failure(still_busy, line.has("quiet") ? "" : quoted(name) + " is still busy");
      if (!told && passed >= std::chrono::seconds(1)) {
        told = true;
        say("waiting for " + quoted(name) +
            (left < 0 ? "" : ", which ends in " + in_words(milliseconds(left)) + " unless renewed"));
      }
      auto pause = std::min(longest_pause, limit - passed);
      if (left >= 0) pause = std::min(pause, milliseconds(left + 1));
      answer message;
      // The first is the answer to SUBSCRIBE: looking alone is no answer.
      if (to->listens.receive(message, pause) && message.what != answer::type::error) gone.back();
    } catch (failure const& why) {
      to.reset();
      gone.away(why);
    }
}

}  // namespace latchkey::tool
