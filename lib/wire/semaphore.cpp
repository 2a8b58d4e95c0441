#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/semaphore_scripts.hpp>

#include <stdexcept>
#include <string>

namespace latchkey::detail {
namespace {

// Permits are a number: nobody owns them. A grant is therefore no hold; what tells a repeated request that its first
// copy ran is its mark.
class semaphore_rules final : public kind {
 public:
  semaphore_rules()
      : kind({.name = "semaphore",
              .exclusive = false,
              .hand_off = false,
              .grant_wakes_next = true,
              .renews = false,
              .remembers = mark_time,
              .hint_most = 10'000}) {}

  std::string channel(std::string_view name, std::string_view) const override { return prefixed("redisson_sc", name); }

  script const& script_for(ask what) const override {
    if (what == ask::acquire) return semaphore_acquire();
    if (what == ask::release) return semaphore_give_back();
    throw std::logic_error("a semaphore has no such request");
  }

  script const& command_script(unsigned char command) const override {
    switch (static_cast<semaphore_command>(command)) {
      case semaphore_command::release: return semaphore_release();
      case semaphore_command::add: return semaphore_add();
      case semaphore_command::drain: return semaphore_drain();
      case semaphore_command::try_set: return semaphore_try_set();
    }
    throw std::logic_error("a semaphore has no such command");
  }

  command_rules rules_of(unsigned char command) const override {
    return {.persists = static_cast<semaphore_command>(command) == semaphore_command::release};
  }

  void add_keys(item const& one, words& command) const override {
    command.add(one.name);
    if (one.what == ask::acquire) add_prefixed(command, "latchkey_semaphore_claim", one.name);
    command.add(mark_of(one.name, one.field));
  }

  void add_arguments(item const& one, words& command) const override {
    bool const drains =
        one.what == ask::command && static_cast<semaphore_command>(one.command) == semaphore_command::drain;
    if (!drains) add_prefixed(command, "redisson_sc", one.name);
    if (one.what == ask::acquire) command.add(one.field.substr(0, one.field.rfind(':')));
    if (one.what == ask::acquire && !one.argument.empty())
      command.add(std::to_string(one.amount) + '/' + std::string(one.argument));
    else if (one.what != ask::release)
      command.add(one.amount);
    if (one.what == ask::acquire) command.add(std::int64_t{one.wait > 0});
    if (one.what != ask::release) command.add(std::int64_t{one.repeated});
    command.add(mark_time);
  }

  outcome read(ask what, item const& one, reply const& answer) const override {
    auto made = what == ask::acquire   ? read_taken(answer)
                : what == ask::release ? read_given_back(answer)
                : what == ask::command ? read_done(answer)
                                       : outcome{};
    // Only a repeated request asks whether it ran, and then nothing else.
    if (made.what == outcome::type::unseen && !one.repeated) return {};
    // Nothing was taken, or the mark of what was taken is gone.
    if (what == ask::release && made.what == outcome::type::absent) made.what = outcome::type::unseen;
    return made;
  }

  bool wakes(std::string_view message) const override { return says_some(message); }

  admission admit(unsigned char, int const*) const override { return admission::queue; }
};

}  // namespace

kind const& semaphore_kind() {
  static semaphore_rules const& the_one = *new semaphore_rules;
  return the_one;
}

}  // namespace latchkey::detail
