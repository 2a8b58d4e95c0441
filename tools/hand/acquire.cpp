#include <boost/json.hpp>

#include <base/duration.hpp>
#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/json.hpp>
#include <base/kinds.hpp>
#include <base/say.hpp>
#include <condition_variable>
#include <cstdio>
#include <hand/tokens.hpp>
#include <mutex>
#include <options/connection.hpp>
#include <subcommands.hpp>
#include <thread>

namespace latchkey::tool {
namespace {

// The engine accepts no shorter one.
constexpr milliseconds shortest_lease{10};

struct asked {
  std::string name;
  std::string kind;
  milliseconds wait;
  milliseconds lease;
};

asked read(command_line const& line) {
  asked made{line.operands().front(), line.choice("kind", "lock"), forever, {}};
  if (made.name.empty()) throw failure(wrong_usage, "the name of the lock is empty");
  if (!line.has("lease")) throw failure(wrong_usage, "--lease is missing: nothing renews what a script holds");
  made.lease = line.duration("lease", forever, shortest_lease);
  if (made.lease == forever) throw failure(wrong_usage, "--lease has an end: nothing releases what a script forgets");
  if (line.has("no-wait") && line.has("wait")) throw failure(wrong_usage, "--wait and --no-wait were given");
  made.wait = line.has("no-wait") ? milliseconds(0) : line.duration("wait", forever, milliseconds(0));
  return made;
}

// After a second a line on stderr says what is waited for.
class waiting_told {
 public:
  explicit waiting_told(asked const& what) : what_(what), teller_([this](std::stop_token const& end) { tell(end); }) {}

  void on_event(event const& heard) {
    std::scoped_lock const lock(mutex_);
    busy_ = busy_ || heard.type == event_type::waiting;
    if (auto const refusal = refusal_in(heard); !refusal.empty()) words_ = refusal;
  }

 private:
  void tell(std::stop_token const& end) {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, end, std::chrono::seconds(1), [&] { return end.stop_requested(); })) return;
    say("waiting for " + (busy_ ? end_of_others(what_.kind, what_.name) : an_answer_about(what_.name, words_)));
  }

  asked const& what_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  bool busy_ = false;
  std::string words_;
  std::jthread teller_;
};

// Empty: still busy.
std::optional<token> take_permit(client const& from, asked const& what) {
  auto const id = from.get_permit_semaphore(what.name).try_acquire(what.wait, what.lease);
  if (!id) return {};
  return token{{what.name}, what.kind, *id, 0, {}};
}

std::optional<token> take(client const& from, asked const& what) {
  if (what.kind == "semaphore") return take_permit(from, what);
  acquire_options options;
  options.wait = what.wait;
  options.lease = what.lease;
  auto held = lock_of(from, what.kind, what.name).acquire(options);
  if (!held) return {};
  auto made = read_token(held.detach());
  if (!made) throw failure(unavailable, quoted(what.name) + " was acquired, and its lease has ended already");
  return made;
}

bool print(token const& taken, bool as_json) {
  auto text = write_token(taken);
  if (as_json) {
    boost::json::object made{{"schema", 1},          {"name", taken.names.front()}, {"kind", taken.kind},
                             {"owner", taken.owner}, {"lease_ms", taken.lease_ms},  {"token", text}};
    made["fence"] = taken.fence ? boost::json::value(*taken.fence) : boost::json::value(nullptr);
    text = json_text(made);
  }
  return std::puts(text.c_str()) >= 0 && std::fflush(stdout) == 0;
}

}  // namespace

int acquire(command_line const& line) {
  auto const what = read(line);
  auto server = connection_of(line);
  server.settings.client_id = hand_made_id();
  server.settings.connect_timeout = connect_limit(what.wait);
  if (what.wait == milliseconds(0)) {
    // Not for a server either.
    server.settings.timeout = std::chrono::seconds(1);
    server.settings.retry_attempts = 1;
  }
  waiting_told told(what);
  server.settings.on_event = [&told](event const& heard) { told.on_event(heard); };
  client const from(server.uri, std::move(server.settings));
  from.connect(connect_limit(what.wait));
  auto taken = take(from, what);
  if (!taken) throw failure(still_busy, line.has("quiet") ? "" : quoted(what.name) + " is still busy");
  taken->lease_ms = what.lease.count();
  if (print(*taken, line.has("json"))) return yes;
  release_hold(from, *taken);  // nobody has heard of it
  throw failure(internal_error, "the token cannot be written");
}

}  // namespace latchkey::tool
