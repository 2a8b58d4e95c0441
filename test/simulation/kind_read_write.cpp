#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

constexpr unsigned char write_side = 1;
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

  bool may_share(task const& a, task const& b) const override { return a.mode != write_side && b.mode != write_side; }

  bool free(keyspace& data, std::string const& lock, std::string const& field, task const& waits) const override {
    auto const there = holders(data, lock);
    if (there.empty()) return true;
    bool const written =
        std::any_of(there.begin(), there.end(), [](auto const& one) { return one.ends_with(write_suffix); });
    return waits.mode != write_side && !written && std::find(there.begin(), there.end(), field) == there.end();
  }

  // The time of a hold that was forced, or of a reader who left while somebody wrote.
  bool may_stay(std::string const& key) const override { return key.find(":rwlock_timeout:") != key.npos; }
};

}  // namespace

std::unique_ptr<simulated_kind> read_write_kind() { return std::make_unique<read_write>(); }

}  // namespace latchkey::simulation
