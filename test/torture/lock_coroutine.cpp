#include <torture/lock_coroutine.hpp>
#include <torture/watch.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace latchkey::torture {

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> pause(milliseconds length) {
  asio::steady_timer timer(co_await asio::this_coro::executor, length);
  co_await timer.async_wait(as_result);
}

asio::awaitable<void> section(slot& own, plan const what) {
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
    for (int i = 0; i <= next.retakes && own.phase() == board::work; ++i) co_await section(own, next);
  }
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) co_await section(own, own.last(lock));
}

}  // namespace latchkey::torture
