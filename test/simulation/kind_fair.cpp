#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

template <class Value>
Value const* value_of(keyspace& data, std::string const& key) {
  auto const* const there = data.find(key);
  return there ? std::get_if<Value>(&there->holds) : nullptr;
}

// The hold is that of the reentrant lock; beside it there is a list of waiters, and when each of them counts as dead.
class fair final : public simulated_kind {
 public:
  fair() : simulated_kind("fair", detail::fair_kind()) {}

  std::vector<waiter> line(keyspace& data, std::string const& lock) const override {
    std::vector<waiter> made;
    auto const* const queue = value_of<keyspace::list_value>(data, detail::prefixed("redisson_lock_queue", lock));
    auto const* const scores = value_of<keyspace::scored_value>(data, detail::prefixed("redisson_lock_timeout", lock));
    if (!queue) return made;
    for (auto const& field : *queue) {
      made.push_back({field});
      if (!scores) continue;
      for (auto const& [score, other] : *scores)
        if (other == field) made.back().dead_at = static_cast<std::int64_t>(score);
    }
    return made;
  }

  // It is his turn if nobody who may be alive stands before him.
  bool free(keyspace& data, std::string const& lock, std::string const& field, task const& waits) const override {
    if (!simulated_kind::free(data, lock, field, waits)) return false;
    for (auto const& one : line(data, lock)) {
      if (one.field == field) return true;
      if (one.dead_at > data.now || one.dead_at == 0) return false;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<simulated_kind> fair_kind() { return std::make_unique<fair>(); }

}  // namespace latchkey::simulation
