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

std::string transfers::shown_field(world& in, task const& held) {
  auto const number = in.machine(held.client).shown_as(*held.which, held.key, held.owner);
  bool const others = held.what == operation::type::adopt && held.argument;
  return held.which->field(others ? *held.argument : client_id(held.client), number, held.mode);
}

task& transfers::ask(world& in, task const& granted, std::size_t client) {
  return in.ask(detail::query::rest, 0,
                {.name = granted.key,
                 .client = client,
                 .which = granted.which,
                 .mode = granted.mode,
                 .argument = granted.which->field(client_id(granted.client), granted.owner, granted.mode)});
}

task& transfers::take_up(world& in, std::uint64_t owner, task const& granted, task const& asked) {
  how const options{.name = granted.key, .client = asked.client, .which = granted.which, .mode = granted.mode};
  task& one = in.made(owner, options, operation::type::adopt);
  one.started = asked.started;
  one.value = asked.value;
  one.field = granted.owner;
  if (asked.client != granted.client) one.argument = std::make_shared<std::string const>(client_id(granted.client));
  one.link = &one.shown;
  in.start(one);
  return one;
}

task& transfers::adopting(world& in, std::uint64_t owner, task const& granted, how const& options,
                          std::function<void()> const& meanwhile) {
  task& asked = in.await(ask(in, granted, options.client));
  if (meanwhile) meanwhile();
  return take_up(in, owner, granted, asked);
}

}  // namespace latchkey::test
