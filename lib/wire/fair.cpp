#include <wire/kinds.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

// The order of arrival over all processes: a list of waiters on the server, each with a time at which it counts as
// dead and a channel of its own. The hold itself is that of the reentrant lock, and so is the meaning of most answers.
class fair final : public reentrant_family {
 public:
  // Who hears no messages polls faster than the scripts give up whom nobody hears.
  fair()
      : reentrant_family({.name = "fair_lock",
                          .own_channel = true,
                          .poll_first = 100,
                          .poll_most = 400,
                          .hint_most = 10'000,
                          .scripts = {&fair_acquire, &fair_release, &fair_hand_off, nullptr, nullptr,
                                      &fair_force_unlock, &fair_leave}}) {}

  std::string channel(std::string_view name, std::string_view field) const override {
    auto made = reentrant_family::channel(name, field);
    if (!field.empty()) made.append(":").append(field);
    return made;
  }

  void add_keys(item const& item, words& command) const override {
    reentrant_family::add_keys(item, command);
    if (item.what == ask::renew || item.what == ask::extend) return;
    add_prefixed(command, "redisson_lock_queue", item.name);
    add_prefixed(command, "redisson_lock_timeout", item.name);
  }

  void add_arguments(item const& item, words& command) const override {
    // The reentrant lock's other requests that tell somebody have the same channel.
    if (item.what == ask::acquire || item.what == ask::leave) add_prefixed(command, channel_prefix(), item.name);
    switch (item.what) {
      case ask::acquire:
      case ask::hand_off:
        reentrant_family::add_arguments(item, command);
        return command.add_all(item.line_time, std::int64_t{item.enters_line});
      case ask::leave: return command.add_all(item.field, item.line_time);
      default: return reentrant_family::add_arguments(item, command);
    }
  }
};

}  // namespace

kind const& fair_kind() { return lasting<fair>(); }

}  // namespace latchkey::detail
