// What happens to locks, in a log: with spdlog, and without a line that would wait for a disk on the thread that
// renews. Usage: log_events [URI]; without one a private redis-server is started.

#include <latchkey/latchkey.hpp>

#include <spdlog/async.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

using namespace std::chrono_literals;

namespace {

// [log]
spdlog::level::level_enum level_of(latchkey::event_type type) {
  using enum latchkey::event_type;
  switch (type) {
    case lost:
    case max_hold_reached:
    case permit_lost:
    case unlock_failed: return spdlog::level::err;
    case gave_up:
    case attempt:
    case waiting:
    case granted:
    case handed_off:
    case released: return spdlog::level::debug;
    case connected:
    case tls_reloaded: return spdlog::level::info;
    default: return spdlog::level::warn;
  }
}

latchkey::config with_log(std::shared_ptr<spdlog::logger> logger) {
  latchkey::config settings;
  settings.on_event = [logger = std::move(logger)](latchkey::event const& what) {
    auto const level = level_of(what.type);
    if (!logger->should_log(level)) return;
    logger->log(level, "{} lock={} kind={} call={} took={}us: {}{}", latchkey::to_string(what.type), what.lock,
                what.kind, what.context, what.took.count(), what.error ? what.error.message() + " " : std::string(),
                what.text);
  };
  return settings;
}
// [/log]

}  // namespace

int main(int argc, char** argv) {
  try {
    std::ostringstream lines;
    spdlog::init_thread_pool(1'024, 1);  // its own thread writes; a full queue leaves out the oldest
    auto const logger =
        std::make_shared<spdlog::async_logger>("locks", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines),
                                               spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
    logger->set_level(spdlog::level::debug);
    {
      latchkey::client const client(argc > 1 ? argv[1] : "embedded:", with_log(logger));
      auto const hold = client.get_lock("orders").acquire({.wait = 5s, .context = 42});
      if (!hold.held()) return EXIT_FAILURE;
    }
    spdlog::shutdown();  // writes what is left
    std::cout << lines.str();
    auto const written = [text = lines.str()](char const* what) { return text.find(what) != std::string::npos; };
    return written("granted lock=orders kind=lock call=42") && written("connected") ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "log_events: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
