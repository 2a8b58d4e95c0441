#include <wire/item.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

constexpr std::string_view channel_prefix = "redisson_lock__channel";

outcome read_leave(reply const& answer) {
  if (says(answer, verdict::released)) return {.what = outcome::type::released};
  if (says(answer, verdict::absent)) return {.what = outcome::type::absent};
  return is_refusal(answer) ? refused_by(answer) : outcome{};
}

// The order of arrival over all processes: a list of waiters on the server, each with a time at which it counts as
// dead and a channel of its own. The hold itself is that of the reentrant lock, and so is the meaning of most answers.
class fair final : public kind {
 public:
  // Who hears no messages polls faster than the scripts give up whom nobody hears.
  fair()
      : kind({.name = "fair_lock",
              .own_channel = true,
              .poll_first = 100,
              .poll_most = 400,
              .hint_most = 10'000,
              .scripts = {&fair_acquire, &fair_release, &fair_hand_off, &reentrant_renew, &reentrant_extend,
                          &fair_force_unlock, &fair_leave}}) {}

  std::string channel(std::string_view name, std::string_view field) const override {
    auto made = prefixed(channel_prefix, name);
    if (!field.empty()) made.append(":").append(field);
    return made;
  }

  void add_keys(item const& item, words& command) const override {
    if (item.what == ask::renew || item.what == ask::extend) return reentrant_kind().add_keys(item, command);
    command.add(item.name);
    add_prefixed(command, "redisson_lock_queue", item.name);
    add_prefixed(command, "redisson_lock_timeout", item.name);
  }

  void add_arguments(item const& item, words& command) const override {
    // The reentrant lock's other requests that tell somebody have the same channel.
    if (item.what == ask::acquire || item.what == ask::leave) add_prefixed(command, channel_prefix, item.name);
    switch (item.what) {
      case ask::acquire:
      case ask::hand_off:
        reentrant_kind().add_arguments(item, command);
        command.add(item.line_time);
        command.add(std::int64_t{item.enters_line});
        return;
      case ask::leave:
        command.add(item.field);
        command.add(item.line_time);
        return;
      default: return reentrant_kind().add_arguments(item, command);
    }
  }

  outcome read(ask what, item const& item, reply const& answer) const override {
    return what == ask::leave ? read_leave(answer) : reentrant_kind().read(what, item, answer);
  }

  bool wakes(std::string_view message) const override { return reentrant_kind().wakes(message); }

  admission admit(unsigned char mode, int const* live) const override { return reentrant_kind().admit(mode, live); }
};

}  // namespace

kind const& fair_kind() {
  // Never destroyed: a client of static storage may still release while the process exits.
  static fair const& the_one = *new fair;
  return the_one;
}

}  // namespace latchkey::detail
