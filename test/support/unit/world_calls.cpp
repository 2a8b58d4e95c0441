#include <support/start_one.hpp>
#include <support/unit/world.hpp>

namespace latchkey::test {

using detail::operation;

task& world::made(std::uint64_t owner, how const& options, operation::type what) {
  task& one = *tasks_.emplace_back(std::make_unique<task>());
  one.what = what;
  one.which = options.which ? options.which : &detail::reentrant_kind();
  one.mode = options.mode;
  one.key = options.name;
  one.name = one.key;
  one.owner = owner;
  one.client = options.client;
  one.direct = one.self_timed = options.direct;
  if (one.self_timed) self_timed_.push_back(&one);
  one.lease = options.lease;
  one.max_hold = options.max_hold;
  one.line_time = options.line_time;
  one.amount = options.amount;
  one.keeps = options.keeps;
  if (!options.argument.empty()) one.argument = std::make_shared<std::string const>(options.argument);
  one.shown.of = &one;
  if (options.lock_delay.count() != 0) one.shown.set_more().lock_delay = options.lock_delay;
  if (options.progress_within.count() != 0) one.shown.set_more().progress_within = options.progress_within;
  one.started = now;
  static constexpr char const* names[] = {"acquire", "release", "extend",  "force_unlock",
                                          "query",   "command", "connect", "adopt"};
  one.label =
      "#" + std::to_string(tasks_.size()) + " " + names[static_cast<int>(what)] + " by " + std::to_string(owner);
  // What a call without a wait may take in all.
  one.deadline = detail::after(now, settings.connect_timeout + settings.timeout * (settings.retry_attempts + 1));
  return one;
}

void world::start(task& one) {
  node& me = *clients_[one.client];
  remember(one.label + " begins" + (one.direct ? " (blocking)" : ""));
  std::uint32_t const lane = start_one(me.machine, one, one.direct, now, me.out);
  perform(one.client);
  if (lane != 0) borrow(me, lane, one);
}

void world::borrow(node& me, std::uint32_t serial, task& one) {
  if (me.lent.contains(serial)) fail("a lane was lent twice");
  if (!me.connections.contains(serial) || !me.connections.at(serial).lendable) fail("a lane was lent that nobody has");
  me.lent[serial] = loan{&one, std::min(one.limit(), detail::after(now, settings.timeout))};
  say(one.client, serial, me.machine.lane_bytes(serial));
}

task& world::acquire(std::uint64_t owner, how const& options) {
  task& one = made(owner, options, operation::type::acquire);
  if (options.leased) one.link = &one.shown;
  one.deadline = options.wait.count() < 0 ? never : detail::after(now, options.wait);
  one.member = options.member;
  start(one);
  return one;
}

task& world::once(std::uint64_t owner, how options) {
  task& one = made(owner, options, operation::type::acquire);
  if (options.leased) one.link = &one.shown;
  one.once = true;
  one.bundle = options.bundle;
  start(one);
  return one;
}

task& world::release(task& held, bool direct) {
  how const options{.name = held.key, .direct = direct, .client = held.client, .which = held.which, .mode = held.mode};
  task& one = made(held.owner, options, operation::type::release);
  one.hold = held.hold;
  one.deadline = detail::after(now, settings.close_timeout);  // after that it goes on behind
  held.ended = true;
  clients_[held.client]->machine.unlink(*held.which, held.key, held.owner, held.hold);
  start(one);
  return one;
}

task& world::unlock(std::uint64_t owner, how const& options) {
  task& one = made(owner, options, operation::type::release);
  // The owner's latest hold that no lease shows goes.
  for (auto it = tasks_.rbegin(); it != tasks_.rend(); ++it) {
    task& held = **it;
    if (!held.granted() || held.link || held.ended || held.owner != owner || held.key != one.key ||
        held.client != one.client)
      continue;
    held.ended = true;
    break;
  }
  start(one);
  return one;
}

world& world::drop(task& held) {
  node& me = *clients_[held.client];
  held.ended = true;
  remember(held.label + " is dropped");
  me.machine.unlink(*held.which, held.key, held.owner, held.hold);
  me.machine.drop(*held.which, held.key, held.owner, held.hold, now, me.out);
  perform(held.client);
  return *this;
}

task& world::extend(task& held, milliseconds lease, bool direct) {
  how const options{.name = held.key,
                    .lease = lease,
                    .direct = direct,
                    .client = held.client,
                    .which = held.which,
                    .mode = held.mode};
  task& one = made(held.owner, options, operation::type::extend);
  one.hold = held.hold;
  start(one);
  return one;
}

task& world::force_unlock(how const& options) {
  task& one = made(0, options, operation::type::force_unlock);
  for (auto const& other : tasks_)
    if (other->key == options.name) other->removed = true;
  start(one);
  return one;
}

task& world::command(unsigned char which, how const& options) {
  task& one = made(1'000 + tasks_.size(), options, operation::type::command);
  one.command = which;
  start(one);
  return one;
}

task& world::ask(detail::query what, std::uint64_t owner, how const& options) {
  task& one = made(owner, options, operation::type::query);
  one.question = what;
  start(one);
  return one;
}

task& world::connect(milliseconds wait, how const& options) {
  task& one = made(0, options, operation::type::connect);
  one.deadline = detail::after(now, wait);
  start(one);
  return one;
}

world& world::cancel(task& one) {
  node& me = *clients_[one.client];
  remember(one.label + " is cancelled");
  me.machine.cancel(one, now, me.out);
  perform(one.client);
  return *this;
}

world& world::close(std::size_t index, std::uint64_t closer) {
  node& me = *clients_[index];
  remember("close");
  me.machine.close(closer, now, me.out);
  perform(index);
  return *this;
}

void world::tell(std::string_view what, std::function<void(client_machine&, instant, detail::actions&)> const& how) {
  remember(std::string(what));
  how(clients_.front()->machine, now, clients_.front()->out);
  perform(0);
}

}  // namespace latchkey::test
