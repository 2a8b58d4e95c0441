#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

keyspace::hash_value const* hash_of(keyspace& data, std::string const& key) {
  keyspace::value* const found = data.find(key);
  return found ? std::get_if<keyspace::hash_value>(&found->holds) : nullptr;
}

}  // namespace

simulated_kind::server_hold simulated_kind::look(keyspace& data, std::string const& lock,
                                                 std::string const& field) const {
  server_hold made;
  if (auto const* const fields = hash_of(data, lock))
    for (auto const& [name_there, value] : *fields)
      if (name_there == field) {
        made.count = integer_of(value).value_or(0);
        made.ends = data.find(lock)->ends;
      }
  return made;
}

std::vector<std::string> simulated_kind::holders(keyspace& data, std::string const& lock) const {
  std::vector<std::string> made;
  if (auto const* const fields = hash_of(data, lock))
    for (auto const& [field, value] : *fields) made.push_back(field);
  return made;
}

std::vector<std::pair<detail::script const*, char const*>> simulated_kind::scripts() const {
  using detail::ask;
  std::vector<std::pair<detail::script const*, char const*>> made;
  constexpr std::pair<ask, char const*> always[] = {{ask::acquire, "acquire"},
                                                    {ask::release, "release"},
                                                    {ask::renew, "renew"},
                                                    {ask::extend, "extend"},
                                                    {ask::force_unlock, "force_unlock"}};
  for (auto const& [what, called] : always) made.emplace_back(&which.script_for(what), called);
  if (which.acquire_all()) made.emplace_back(which.acquire_all(), "acquire_all");
  if (which.rules().hand_off) made.emplace_back(&which.script_for(ask::hand_off), "hand_off");
  if (which.rules().own_channel || which.rules().claims) made.emplace_back(&which.script_for(ask::leave), "leave");
  return made;
}

bool simulated_kind::free(keyspace& data, std::string const& lock, std::string const&, task const&) const {
  return !data.find(lock);
}

namespace {

class fenced final : public simulated_kind {
 public:
  fenced() : simulated_kind("fenced", detail::fenced_kind()) {}
  bool may_stay(std::string const& key) const override { return key.starts_with("redisson_lock_token"); }
};

// The key is a string: the field of who has it.
class plain final : public simulated_kind {
 public:
  plain() : simulated_kind("plain", detail::plain_kind()) {}

  server_hold look(keyspace& data, std::string const& lock, std::string const& field) const override {
    auto const* const there = data.find(lock);
    auto const* const holder = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
    if (!holder || *holder != field) return {};
    return {1, there->ends};
  }

  std::vector<std::string> holders(keyspace& data, std::string const& lock) const override {
    auto const* const there = data.find(lock);
    auto const* const holder = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
    return holder ? std::vector{*holder} : std::vector<std::string>{};
  }
};

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

constexpr unsigned char write_mode = 1;
constexpr std::string_view write_suffix = ":write";

// One hash for both sides, whose field `mode` says which; and for each hold of a reader a key that lives as long as its
// lease. The hash without any such key of a reader is a hold that has ended: whoever comes takes no notice of it.
class read_write final : public simulated_kind {
 public:
  read_write() : simulated_kind("read_write", detail::read_write_kind(), 2) {}

  server_hold look(keyspace& data, std::string const& lock, std::string const& field) const override {
    auto made = simulated_kind::look(data, lock, field);
    if (made.count == 0 || field.ends_with(write_suffix)) return made;
    std::int64_t last = -2;
    for (std::int64_t i = 1; i <= made.count; ++i) {
      auto const* const stamp = data.find("{" + lock + "}:" + field + ":rwlock_timeout:" + std::to_string(i));
      if (stamp) last = std::max(last, stamp->ends == keyspace::forever ? INT64_MAX : stamp->ends);
    }
    if (last == -2) return {};
    made.ends = made.ends == keyspace::forever ? last : std::min(made.ends, last);
    return made;
  }

  std::vector<std::string> holders(keyspace& data, std::string const& lock) const override {
    auto made = simulated_kind::holders(data, lock);
    std::erase_if(made, [&](auto const& field) { return field == "mode" || look(data, lock, field).count == 0; });
    return made;
  }

  bool may_share(task const& a, task const& b) const override { return a.mode != write_mode && b.mode != write_mode; }

  bool free(keyspace& data, std::string const& lock, std::string const& field, task const& waits) const override {
    auto const there = holders(data, lock);
    if (there.empty()) return true;
    bool const written =
        std::any_of(there.begin(), there.end(), [](auto const& one) { return one.ends_with(write_suffix); });
    return waits.mode != write_mode && !written && std::find(there.begin(), there.end(), field) == there.end();
  }

  // The time of a hold that was forced, or of a reader who left while somebody wrote.
  bool may_stay(std::string const& key) const override { return key.find(":rwlock_timeout:") != key.npos; }
};

// The relatives of the reentrant lock have its hash. Of a joint lock: where its members are.
std::unique_ptr<simulated_kind> of(char const* name, detail::kind const& which, std::vector<std::size_t> places = {},
                                   bool majority = false) {
  auto made = std::make_unique<simulated_kind>(name, which);
  made->places = std::move(places);
  made->majority = majority;
  return made;
}

}  // namespace

std::vector<std::unique_ptr<simulated_kind>> const& simulated_kinds() {
  static auto const all = [] {
    std::vector<std::unique_ptr<simulated_kind>> made;
    made.push_back(of("lock", detail::reentrant_kind()));
    made.push_back(std::make_unique<fenced>());
    made.push_back(of("non_reentrant", detail::non_reentrant_kind()));
    made.push_back(of("spin", detail::spin_kind()));
    made.push_back(std::make_unique<plain>());
    made.push_back(std::make_unique<fair>());
    made.push_back(std::make_unique<read_write>());
    made.push_back(semaphore_kind());
    made.push_back(permit_semaphore_kind());
    made.push_back(latch_kind());
    // Two members that one script call takes together, and one on another server.
    made.push_back(of("multi", detail::reentrant_kind(), {0, 0, 1}));
    // Three servers, of which two make the lock.
    made.push_back(of("red", detail::reentrant_kind(), {0, 1, 2}, true));
    return made;
  }();
  return all;
}

}  // namespace latchkey::simulation
