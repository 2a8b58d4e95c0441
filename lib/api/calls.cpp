#include <api/calls.hpp>

#include <api/joint_lock.hpp>

#include <algorithm>
#include <span>

namespace latchkey::detail {

void start(lock_key const& key, call& one) {
  if (key.joint) return key.joint->start(one);
  key.engine->start(one);
}

void start(std::vector<std::pair<lock_key const*, call*>> const& all) {
  std::vector<core*> started;
  for (auto const& [key, one] : all) {
    if (key->joint) {
      key->joint->start(*one);
      continue;
    }
    core* const engine = key->engine.get();
    if (std::find(started.begin(), started.end(), engine) != started.end()) continue;
    started.push_back(engine);
    std::vector<call*> together;
    for (auto const& [other, same] : all)
      if (!other->joint && other->engine.get() == engine) together.push_back(same);
    engine->start(together);
  }
}

void cancel(lock_key const& key, call& one) {
  if (key.joint) return key.joint->cancel(one);
  key.engine->cancel(one);
}

instant expire(lock_key const& key, call& one) { return key.joint ? key.joint->expire(one) : key.engine->expire(one); }

void run(lock_key const& key, blocking_call& one, std::stop_token const& stop) {
  if (key.joint) return key.joint->run(one, stop);
  key.engine->run(one, stop);
}

void drop(lock_key const& key, std::uint64_t owner, hold_id hold) {
  if (key.joint) return key.joint->drop(owner, hold);
  key.engine->drop(*key.which, key.name, owner, hold);
}

bool holds(lock_key const& key, std::uint64_t owner) {
  return key.joint ? key.joint->holds(owner) : key.engine->holds(*key.which, key.name, owner);
}

bool forked(lock_key const& key) {
  if (key.engine->forked()) return true;
  if (!key.joint) return false;
  auto const& members = key.joint->members();
  return std::any_of(members.begin(), members.end(), [](auto const& one) { return forked(*one); });
}

bool inside(lock_key const& key) {
  if (key.engine->inside()) return true;
  if (!key.joint) return false;
  auto const& members = key.joint->members();
  return std::any_of(members.begin(), members.end(), [](auto const& one) { return inside(*one); });
}

instant budget_end(lock_key const& key, instant start) {
  if (!key.joint) return key.engine->budget_end(start);
  instant last{};
  for (auto const& one : key.joint->members()) last = std::max(last, budget_end(*one, start));
  return last;
}

milliseconds watchdog_time(lock_key const& key) {
  if (!key.joint) return key.engine->settings().lock_watchdog_timeout;
  milliseconds longest{0};
  for (auto const& one : key.joint->members()) longest = std::max(longest, watchdog_time(*one));
  return longest;
}

}  // namespace latchkey::detail
