#include <torture/watch.hpp>

#include <chrono>
#include <stop_token>
#include <thread>

namespace latchkey::torture {

namespace {

distributed_lock lock_of(slot& own, plan const& what) {
  auto const kind = static_cast<std::uint8_t>(&own.kind() - torture_kinds().data());
  return own.kind().make(own.in().clients, lock_name(kind, what.lock), what.reads);
}

template <class Holding>
watch<Holding> work_inside(Holding const& held, std::int64_t work) {
  watch<Holding> at_work(held, work);
  while (at_work.look()) std::this_thread::sleep_for(at_work.pause());
  return at_work;
}

void end_early(slot& own, lease& held, std::int64_t work) {
  held.release();
  auto const seen = work_inside(pretended{}, work + ms);
  own.leave(seen.trusted(), seen.told(), 0);
  own.released(outcome::released);
}

void reenter(distributed_lock const& lock, lease const& held) try {
  acquire_options again;
  again.owner = held.owner();
  again.wait = milliseconds(100);
  auto inner = lock.acquire(again);
} catch (lock_error const&) {
  // The outer hold is what is looked at.
}

void extend(lease& held, plan const& what) try {
  static_cast<void>(held.extend(*what.extends));
} catch (lock_error const&) {
  // Then it lasts as long as before at most.
}

void release(slot& own, lease& held, bool drops) try {
  if (drops) {
    held = lease();
    return own.released(outcome::dropped);
  }
  own.released(static_cast<outcome>(held.release()));
} catch (lock_error const& error) {
  own.released(error.code());
}

void section(slot& own, plan const& what) {
  own.ask(what);
  if (own.ignores_exclusion()) {
    own.granted(0);
    auto const seen = work_inside(pretended{}, what.work + ms);
    own.leave(seen.trusted(), seen.told(), 0);
    return own.released(outcome::released);
  }
  lease held;
  auto const lock = lock_of(own, what);
  try {
    acquire_options how;
    how.wait = what.wait;
    how.lease = what.lease;
    how.max_hold = what.max_hold;
    if (what.same_owner) how.owner = own.who();
    std::stop_source stop;
    std::jthread canceller;
    if (what.cancels)
      canceller = std::jthread([&, after = milliseconds(own.dice().between(0, 30))] {
        std::this_thread::sleep_for(after);
        stop.request_stop();
      });
    held = lock.acquire(how, stop.get_token());
  } catch (lock_error const& error) {
    own.refused(error.code());
    std::this_thread::sleep_for(milliseconds(own.dice().between(1, 30)));
    return;
  }
  if (own.hears_late(what)) std::this_thread::sleep_for(what.wait + milliseconds(1'200));
  if (!held) return own.refused({});
  own.granted(held.fencing_token().value_or(0));
  if (own.releases_early() && own.dice().one_in(20)) return end_early(own, held, what.work);
  if (what.reenters) reenter(lock, held);
  if (what.extends) extend(held, what);
  auto const seen = work_inside(held, what.work);
  auto const longest =
      std::max(what.lease.value_or(what.max_hold.value_or(own.in().run.lease)), what.extends.value_or(milliseconds(0)));
  own.leave(seen.trusted(), seen.told(), longest.count() * ms);
  release(own, held, what.drops);
}

}  // namespace

void run_lock_thread(slot& own) {
  while (own.phase() == board::work) section(own, own.draw());
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) section(own, own.last(lock));
}

}  // namespace latchkey::torture
