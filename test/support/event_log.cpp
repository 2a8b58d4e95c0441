#include <support/event_log.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace latchkey::test {

namespace {

// A lock that nobody has: what becomes of its unlock is told by an event, and asks no server.
constexpr std::string_view marker = "nothing:event-log";

}  // namespace

struct event_log::state {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<logged_event> events;
  int marks = 0;

  auto count(event_type type, std::string_view lock) const {
    return std::count_if(events.begin(), events.end(),
                         [&](logged_event const& e) { return e.type == type && (lock.empty() || e.lock == lock); });
  }
};

event_log::event_log() : state_(std::make_shared<state>()) {}

std::function<void(event const&)> event_log::callback() const {
  return [state = state_](event const& e) {
    std::lock_guard guard(state->mutex);
    if (e.lock == marker)
      ++state->marks;
    else
      state->events.push_back(
          {e.type, std::string(e.lock), e.owner, e.error, std::string(e.text), e.took, std::string(e.kind), e.context});
    state->more.notify_all();
  };
}

bool event_log::wait(event_type type, std::string_view lock, int times, std::chrono::milliseconds limit) const {
  std::unique_lock guard(state_->mutex);
  return state_->more.wait_until(guard, clock::now() + limit, [&] { return state_->count(type, lock) >= times; });
}

bool event_log::wait_for(event_type type, int times, std::chrono::milliseconds limit) const {
  return wait(type, {}, times, limit);
}

bool event_log::wait_for(event_type type, std::string_view lock, int times) const {
  return wait(type, lock, times, patience);
}

void event_log::catch_up(client const& with) const {
  int before = 0;
  {
    std::lock_guard guard(state_->mutex);
    before = state_->marks;
  }
  with.get_lock(std::string(marker)).as_mutex().unlock();
  std::unique_lock guard(state_->mutex);
  must_happen(state_->more.wait_for(guard, patience, [&] { return state_->marks > before; }),
              "a client tells an event of its own");
}

int event_log::count(event_type type, std::string_view lock) const {
  std::lock_guard guard(state_->mutex);
  return static_cast<int>(state_->count(type, lock));
}

int event_log::count_after(client const& with, event_type type, std::string_view lock) const {
  catch_up(with);
  return count(type, lock);
}

int event_log::refusals() const {
  auto const events = all();
  return static_cast<int>(std::count_if(events.begin(), events.end(), [](logged_event const& e) {
    return !e.lock.empty() && (e.type == event_type::warning || e.type == event_type::publish_refused);
  }));
}

logged_event event_log::last(event_type type) const {
  must_happen(wait_for(type), to_string(type).data());
  std::lock_guard guard(state_->mutex);
  auto const& events = state_->events;
  return *std::find_if(events.rbegin(), events.rend(), [&](auto const& e) { return e.type == type; });
}

std::vector<logged_event> event_log::all() const {
  std::lock_guard guard(state_->mutex);
  return state_->events;
}

std::string event_log::words() const {
  std::string result;
  for (auto const& e : all()) {
    result += to_string(e.type);
    result += ' ' + e.lock + ' ' + e.error.message() + ' ' + e.text + '\n';
  }
  return result;
}

}  // namespace latchkey::test
