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
  if (what.same_owner) how.owner = own.who();
  auto [error, held] = co_await lock.async_acquire(how, as_result);
  if (error || !held) {
    own.refused(error);
    if (error) co_await pause(milliseconds(own.dice().between(1, 30)));
    co_return;
  }
  own.granted(held.fencing_token().value_or(0));
  if (what.extends) co_await held.async_extend(*what.extends, as_result);
  watch<lease> at_work(held, what.work);
  for (bool more = at_work.look(); more; more = at_work.look()) co_await pause(at_work.pause());
  auto const longest = std::max(what.lease.value_or(own.in().run.lease), what.extends.value_or(milliseconds(0)));
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
  while (own.phase() == board::work) co_await section(own, own.draw());
  for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) co_await section(own, own.last(lock));
}

}  // namespace latchkey::torture
