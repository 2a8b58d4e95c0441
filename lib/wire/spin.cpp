#include <wire/kinds.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

class spin final : public reentrant_family {
 public:
  // The pauses are those of Redisson's ExponentialBackOff: from 1 ms, doubled, up to 128 ms, with chance.
  spin()
      : reentrant_family({.name = "spin_lock",
                          .turns = true,
                          .listens = false,
                          .polls = true,
                          .poll_first = 1,
                          .poll_most = 128,
                          .scripts = {nullptr, &spin_release, &spin_hand_off, nullptr, nullptr, &spin_force_unlock}}) {}

  std::string channel(std::string_view, std::string_view) const override { return {}; }

  // Its name is its only key.
  bool in_one_slot(std::string_view) const override { return true; }

  bool wakes(std::string_view) const override { return false; }
};

}  // namespace

kind const& spin_kind() { return lasting<spin>(); }

}  // namespace latchkey::detail
