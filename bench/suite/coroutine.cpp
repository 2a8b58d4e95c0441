// A free pair by a coroutine, with the client on the executor that the coroutine runs on.
#include <common/bare_client.hpp>
#include <common/clocks.hpp>
#include <suite/groups.hpp>
#include <suite/rounds.hpp>
#include <support/run_coro.hpp>

#include <latchkey/latchkey.hpp>

#include <boost/asio/steady_timer.hpp>

namespace bench {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<round_times> play(latchkey::distributed_lock lock, regime const& what) {
  auto const me = latchkey::owner::make();
  asio::steady_timer pause(co_await asio::this_coro::executor);
  round_times found;
  found.times.reserve(static_cast<std::size_t>(what.pairs));
  std::int64_t const cpu_began = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < what.pairs; ++i) {
    auto const began = std::chrono::steady_clock::now();
    co_await lock.async_lock(me);
    co_await lock.async_unlock(me);
    auto const took = std::chrono::steady_clock::now() - began;
    found.times.push_back(std::chrono::duration<double, std::micro>(took).count());
    if (what.period.count() == 0) continue;
    pause.expires_at(began + what.period);
    co_await pause.async_wait(asio::deferred);
  }
  found.cpu = static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_began) * 1e-3 / what.pairs;
  co_return found;
}

}  // namespace

void run_coroutine(stage& on) {
  bare_client bare(on.port(), new_name("coroutine"));
  asio::io_context io(1);
  latchkey::client client(io, on.uri());
  auto const lock = client.get_lock(new_name("coroutine"));
  std::vector<side> const sides{
      blocking_side("bare client", [&] { bare.pair(); }),
      {"coroutine", [&](regime const& what) { return latchkey::test::run_coro(io, play(lock, what), 60s); }}};
  for (auto const& one : sides) one.round(*find_regime("back-to-back"));
  for (auto const& what : all_regimes()) {
    on.say(std::string(what.meaning));
    int const rounds = what.period >= 2ms ? (on.rounds() + 2) / 3 : on.rounds();
    auto const found = compare(what, rounds, sides, on.server().pid());
    on.add({.name = std::string(what.meaning) + ", p50",
            .unit = "us",
            .figure = found.sides[1].median_p50(),
            .against = "floor",
            .reference = found.sides[0].median_p50(),
            .ratio = found.ratio_p50(1, 0),
            .most = 1.15,
            .note = found.note(1, 0)});
    on.draw("latency " + std::string(what.name), "coroutine", distribution(found.sides[1]));
  }
  client.close();
}

}  // namespace bench
