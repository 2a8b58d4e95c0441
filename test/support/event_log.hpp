#pragma once

#include <latchkey/client.hpp>
#include <latchkey/event.hpp>
#include <support/patience.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// An event with its words kept.
struct logged_event {
  event_type type;
  std::string lock;
  std::optional<latchkey::owner> owner;
  error_code error;
  std::string text;
  std::chrono::microseconds took{0};
  std::string kind{};
  std::uint64_t context = 0;
};

// Collects the events of a client, from any thread, and lets a test wait for them.
class event_log {
 public:
  event_log();

  // For config::on_event. May outlive the log.
  std::function<void(event const&)> callback() const;

  // True as soon as `times` events of this type came, about `lock` if that is given.
  bool wait_for(event_type type, int times = 1, std::chrono::milliseconds limit = patience) const;
  bool wait_for(event_type type, std::string_view lock, int times = 1) const;

  // Waits until a client with its own thread, whose log this is, has told what happened so far. By an event behind
  // those: a handler that is posted may run before one that another thread has queued and is about to post.
  void catch_up(client const& with) const;

  int count(event_type type, std::string_view lock = {}) const;
  // The same, caught up: a call of a client with its own thread may come back before its events are told.
  int count_after(client const& with, event_type type, std::string_view lock = {}) const;
  // Events about a lock that say that the server refused something.
  int refusals() const;
  // The latest of this type. Waits for the first, and throws if it does not come.
  logged_event last(event_type type) const;
  std::vector<logged_event> all() const;
  // All words of all events in one text, to look for what must not be there.
  std::string words() const;

 private:
  struct state;
  bool wait(event_type type, std::string_view lock, int times, std::chrono::milliseconds limit) const;
  std::shared_ptr<state> state_;
};

}  // namespace latchkey::test
