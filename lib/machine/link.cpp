#include <machine/link.hpp>

#include <machine/context.hpp>

#include <algorithm>

namespace latchkey::detail {

void link::tell(context& shared, words const& command) {
  append_command(out, command);
  ++shared.counters.commands;
}

void link::write(context& shared, words const& command, sent_call&& call) {
  tell(shared, command);
  call.sent = shared.now;
  unanswered.push_back(std::move(call));
  if (unanswered.size() == 1) plan(shared);
}

void link::plan(context& shared) {
  auto const& settings = shared.settings;
  instant next = never;
  if (at != state::up) {
    next = after(since, settings.connect_timeout);
  } else {
    if (lent) next = after(borrowed.sent, settings.timeout);
    if (!unanswered.empty()) next = std::min(next, after(unanswered.front().sent, settings.timeout));
    if (settings.ping_interval.count() > 0) next = std::min(next, after(heard, settings.ping_interval));
  }
  if (next != never) shared.timers.set_lazily(timer, next);
}

}  // namespace latchkey::detail
