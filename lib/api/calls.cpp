#include <api/calls.hpp>

#include <joint/joint_lock.hpp>

#include <algorithm>
#include <span>

namespace latchkey::detail {

void start(lock_key const& key, call& one) {
  if (key.joint) return key.joint->start(one);
  key.engine->start(one);
}

namespace {

// The same client has the two, and both are one name.
bool together(lock_key const& one, lock_key const& other) {
  return !one.joint && !other.joint && one.engine == other.engine;
}

void start_together(call_list const& all, lock_key const& first) {
  std::vector<call*> these;
  for (auto const& [key, one] : all)
    if (together(*key, first)) these.push_back(one);
  first.engine->start(these);
}

}  // namespace

void start(call_list const& all) noexcept {
  for (auto next = all.begin(); next != all.end(); ++next) {
    lock_key const& key = *next->first;
    auto const same = [&key](auto const& other) { return together(*other.first, key); };
    if (!key.joint && std::any_of(all.begin(), next, same)) continue;  // it went with that one
    if (key.joint)
      key.joint->start(*next->second);
    else
      start_together(all, key);
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

bool keeps_out(lock_key const& key, std::uint64_t owner) {
  return key.joint ? key.joint->keeps_out(owner) : key.engine->keeps_out(*key.which, key.name, owner, key.mode);
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
