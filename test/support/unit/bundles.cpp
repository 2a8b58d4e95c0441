#include <support/unit/bundles.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace latchkey::test {

using detail::operation;

void bundles::start(world& in, tasks const& all, bool direct) {
  if (all.empty()) return;
  std::size_t const client = all.front()->client;
  auto& me = *in.clients_[client];
  for (task const* one : all) in.remember(one->label + " begins" + (direct ? " (blocking, with others)" : ""));
  std::vector<operation*> const calls(all.begin(), all.end());
  for (operation const* const call : calls) me.machine.prepare(*call, me.out);
  std::uint32_t const lane = me.machine.start(calls, direct, in.now, me.out);
  in.perform(client);
  if (lane == 0) return;
  in.borrow(me, lane, *all.front());
}

bundles::tasks bundles::once(world& in, std::vector<std::string> const& names, how options, std::uint64_t number,
                             std::uint64_t owner) {
  bool const direct = std::exchange(options.direct, false);  // no clock of its own
  tasks all;
  for (auto const& name : names) {
    options.name = name;
    task& one = *all.emplace_back(&in.made(owner, options, operation::type::acquire));
    if (options.leased) one.link = &one.shown;
    one.once = one.member = true;
    one.comes_back = options.comes_back;
    one.bundle = number;
  }
  start(in, all, direct);
  return all;
}

bundles::tasks bundles::release(world& in, tasks const& held, bool direct) {
  tasks all;
  for (task* const one : held) {
    how const options{.name = one->key, .client = one->client, .which = one->which, .mode = one->mode};
    all.push_back(&in.made(one->owner, options, operation::type::release));
    all.back()->hold = one->hold;
    one->ended = true;
    in.clients_[one->client]->machine.unlink(*one->which, one->key, one->owner, one->hold);
  }
  start(in, all, direct);
  return all;
}

bundles::tasks bundles::granted(world& in, tasks all) {
  for (task* const one : await(in, all))
    if (!one->granted()) in.fail(one->label + " was not granted");
  return all;
}

bundles::tasks bundles::held(tasks const& all) {
  tasks made;
  std::copy_if(all.begin(), all.end(), std::back_inserter(made), [](task const* one) { return one->granted(); });
  return made;
}

bundles::tasks bundles::await(world& in, tasks all) {
  for (task* const one : all) in.await(*one);
  return all;
}

}  // namespace latchkey::test
