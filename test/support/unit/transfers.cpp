#include <support/unit/transfers.hpp>

namespace latchkey::test {

using detail::operation;

detail::detached transfers::detach(world& in, task& held) {
  auto& me = *in.clients_[held.client];
  in.remember(held.label + " is detached");
  auto made = me.machine.detach(*held.which, held.key, held.owner, held.hold, in.now, me.out);
  held.ended = made.refused.empty();
  in.perform(held.client);
  return made;
}

task& transfers::adopting(world& in, std::uint64_t owner, task const& granted, how const& options,
                          std::function<void()> const& meanwhile) {
  auto const from = client_id(granted.client);
  how const question{.name = granted.key,
                     .client = options.client,
                     .which = granted.which,
                     .mode = granted.mode,
                     .argument = granted.which->field(from, granted.owner, granted.mode)};
  task& asked = in.ask(detail::query::rest, 0, question);
  in.await(asked);
  if (meanwhile) meanwhile();
  task& one = in.made(owner, question, operation::type::adopt);
  one.started = asked.started;
  one.value = asked.value;
  one.field = granted.owner;
  one.argument = options.client == granted.client ? nullptr : std::make_shared<std::string const>(from);
  one.link = &one.shown;
  in.start(one);
  return one;
}

}  // namespace latchkey::test
