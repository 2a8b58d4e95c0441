#include <torture/worker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <thread>

namespace latchkey::torture {

namespace {

distributed_lock lock_of(slot& own, plan const& what) {
  auto const kind = static_cast<std::uint8_t>(&own.kind() - torture_kinds().data());
  return own.kind().make(own.in().clients, lock_name(kind, what.lock), what.reads);
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

void thread_section(slot& own, plan const& what) {
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
  while (own.phase() == board::work) {
    auto const next = own.draw();
    thread_section(own, next);
    rest_after(next);
  }
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) thread_section(own, own.last(lock));
}

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> pause(milliseconds length) {
  asio::steady_timer timer(co_await asio::this_coro::executor, length);
  co_await timer.async_wait(as_result);
}

asio::awaitable<void> coro_section(slot& own, plan const what) {
  own.ask(what);
  auto const kind = static_cast<std::uint8_t>(&own.kind() - torture_kinds().data());
  auto const lock = own.kind().make(own.in().clients, lock_name(kind, what.lock), what.reads);
  acquire_options how;
  how.wait = what.wait;
  how.lease = what.lease;
  how.max_hold = what.max_hold;
  if (what.same_owner) how.owner = own.who();
  auto [error, held] = co_await lock.async_acquire(how, as_result);
  if (error || !held) {
    own.refused(error);
    if (error) co_await pause(milliseconds(own.dice().between(1, 30)));
    co_return;
  }
  own.granted(held.fencing_token().value_or(0));
  if (what.mixes) co_await lock.async_unlock(held.owner(), as_result);  // ends nothing that this lease shows
  if (what.extends) co_await held.async_extend(*what.extends, as_result);
  watch<lease> at_work(held, what.work);
  for (bool more = at_work.look(); more; more = at_work.look()) co_await pause(at_work.pause());
  auto const longest =
      std::max(what.lease.value_or(what.max_hold.value_or(own.in().run.lease)), what.extends.value_or(milliseconds(0)));
  own.leave(at_work.trusted(), at_work.told(), longest.count() * ms);
  if (what.drops) {
    held = lease();
    own.released(outcome::dropped);
    co_return;
  }
  auto const [failed, result] = co_await held.async_release(as_result);
  if (failed)
    own.released(failed);
  else
    own.released(static_cast<outcome>(result));
}

}  // namespace

asio::awaitable<void> run_lock_coroutine(slot& own) {
  while (own.phase() == board::work) {
    auto next = own.draw();
    if (next.retakes > 0) {  // others have their turns all the same
      next.drops = next.same_owner = true;
      next.work = 0;
      next.wait = own.in().run.lease;
      next.lease = next.extends = next.max_hold = {};
    }
    for (int i = 0; i <= next.retakes && own.phase() == board::work; ++i) co_await coro_section(own, next);
    if (next.rest > 0) co_await pause(milliseconds(next.rest / ms));
  }
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) co_await coro_section(own, own.last(lock));
}

}  // namespace latchkey::torture
