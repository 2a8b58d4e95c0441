// A free pair of lock() and unlock() from a thread.
#include <common/bare_client.hpp>
#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/crowd.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/steady_timer.hpp>

namespace bench {

namespace {

constexpr int warm_up_pairs = 300;
enum : std::size_t { floor_side, default_side, sleeping_side, polling_side };

struct asked {
  double p50, p99;
  std::optional<double> cpu;
};

asked asked_of(regime const& what) {
  if (what.busy) return {1.1, 1.5, std::nullopt};
  if (what.period.count() == 0) return {0.40, 1.5, std::nullopt};
  return {1.15, 1.5, 1.2};
}

void add_rows(stage& on, regime const& what, comparison const& found) {
  auto const targets = asked_of(what);
  std::string const way(what.meaning);
  auto const& mine = found.sides[default_side];
  auto const& bare = found.sides[floor_side];
  on.add({.name = way + ", p50",
          .unit = "us",
          .figure = mine.median_p50(),
          .against = "floor",
          .reference = bare.median_p50(),
          .ratio = found.ratio_p50(default_side, floor_side),
          .most = targets.p50,
          .note = found.note(default_side, floor_side)});
  on.add({.name = way + ", p90",
          .unit = "us",
          .figure = mine.p90(),
          .against = "floor",
          .reference = bare.p90(),
          .most = 1.5,
          .note = found.note(default_side, floor_side)});
  on.add({.name = way + ", p99",
          .unit = "us",
          .figure = mine.p99(),
          .against = "floor",
          .reference = bare.p99(),
          .most = targets.p99,
          .note = found.note(default_side, floor_side)});
  on.add({.name = way + ", CPU of a pair",
          .unit = "us",
          .figure = mine.median_cpu(),
          .against = "floor",
          .reference = bare.median_cpu(),
          .ratio = found.ratio_cpu(default_side, floor_side),
          .most = targets.cpu});
  on.add({.name = way + ", busy_poll off, p50",
          .unit = "us",
          .figure = found.sides[sleeping_side].median_p50(),
          .against = "floor",
          .reference = bare.median_p50(),
          .ratio = found.ratio_p50(sleeping_side, floor_side),
          .most = 1.10,
          .note = found.note(sleeping_side, floor_side)});
  if (what.period.count() != 0 || what.busy) return;
  on.add({.name = way + ", p50",
          .unit = "us",
          .figure = mine.median_p50(),
          .against = "polling floor",
          .reference = found.sides[polling_side].median_p50(),
          .ratio = found.ratio_p50(default_side, polling_side),
          .most = 1.15,
          .note = found.note(default_side, polling_side)});
}

}  // namespace

void run_pair(stage& on) {
  bare_client bare(on.port(), new_name("pair"));
  bare_client polling(on.port(), new_name("pair"), bare_client::waiting::polls);
  latchkey::client const client(on.uri());
  auto sleeps = latchkey::config();
  sleeps.busy_poll = std::chrono::microseconds(0);
  latchkey::client const sleeper(on.uri(), sleeps);
  auto const lock = client.get_lock(new_name("pair"));
  auto const quiet_lock = sleeper.get_lock(new_name("pair"));
  auto const pair_of = [](latchkey::distributed_lock const& which) {
    return [&which] {
      which.lock();
      which.unlock();
    };
  };
  std::vector<side> const sides{blocking_side("bare client", [&] { bare.pair(); }),
                                blocking_side("latchkey", pair_of(lock)),
                                blocking_side("latchkey, busy_poll off", pair_of(quiet_lock)),
                                blocking_side("bare client that polls", [&] { polling.pair(); })};
  regime warm = *find_regime("back-to-back");
  warm.pairs = warm_up_pairs;
  for (auto const& one : sides) one.round(warm);
  for (auto const& what : all_regimes()) {
    on.say(std::string(what.meaning));
    // A round of the sparse regimes takes long and has as many pairs as are needed.
    int const rounds = what.period >= std::chrono::milliseconds(2) ? (on.rounds() + 1) / 2 : on.rounds();
    auto played = sides;
    // Looking for an answer all the time is a reference where nothing else is done and nobody else wants the core.
    if (what.period.count() != 0 || what.busy) played.pop_back();
    auto const found = compare(what, rounds, played, on.server().pid());
    add_rows(on, what, found);
    for (std::size_t i = 0; i < played.size(); ++i)
      on.draw("latency " + std::string(what.name), played[i].name, distribution(found.sides[i]));
  }
}

// A free pair by a coroutine, with the client on the executor that the coroutine runs on.

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

side coroutine_side(std::string name, asio::io_context& io, latchkey::distributed_lock const& lock) {
  return {std::move(name),
          [&io, lock](regime const& what) { return latchkey::test::run_coro(io, play(lock, what), 60s); }};
}

void run_coroutine(stage& on) {
  bare_client bare(on.port(), new_name("coroutine"));
  asio::io_context io(1);
  latchkey::client client(io, on.uri());
  auto const lock = client.get_lock(new_name("coroutine"));
  std::vector<side> const sides{blocking_side("bare client", [&] { bare.pair(); }),
                                coroutine_side("coroutine", io, lock)};
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

// A lease in a scope: its end releases, and nobody waits for that.

void run_scope(stage& on) {
  constexpr std::size_t locks = 1'000;
  latchkey::client const client(on.uri());
  auto const one = client.get_lock(new_name("scope"));
  std::vector<latchkey::distributed_lock> many;
  while (many.size() < locks) many.push_back(client.get_lock(new_name("scope")));
  std::size_t at = 0;
  std::vector<side> const sides{blocking_side("lock and unlock",
                                              [&] {
                                                one.lock();
                                                one.unlock();
                                              }),
                                blocking_side("scope, many locks",
                                              [&] {
                                                at = (at + 1) % locks;
                                                static_cast<void>(many[at].acquire());
                                              }),
                                blocking_side("scope, one lock", [&] { static_cast<void>(one.acquire()); })};
  regime const& what = *find_regime("back-to-back");
  for (auto const& each : sides)
    for (int i = 0; i < 4; ++i) each.round(what);
  on.say("back to back");
  auto const found = compare(what, on.rounds(), sides, on.server().pid());
  for (std::size_t const i : {1u, 2u})
    on.add({.name = sides[i].name,
            .unit = "us",
            .figure = found.sides[i].median_p50(),
            .against = "lock() + unlock()",
            .reference = found.sides[0].median_p50(),
            .ratio = found.ratio_p50(i, 0),
            .most = 0.60,
            .note = found.note(i, 0)});
}

}  // namespace bench
