// What the settings do whose names are in the manual's chapter: one plot each, and no target.
#include <suite/crowd.hpp>
#include <suite/rounds.hpp>
#include <suite/slow_calls.hpp>
#include <suite/stage.hpp>

#include <latchkey/latchkey.hpp>

#include <boost/asio/co_spawn.hpp>

namespace bench {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

void show_busy_poll(stage& on) {
  std::vector<std::pair<double, double>> p50, cpu;
  for (int const longest : {0, 10, 20, 50, 100, 200}) {
    on.say("busy_poll " + std::to_string(longest) + " us");
    auto settings = quiet_config();
    settings.busy_poll = std::chrono::microseconds(longest);
    latchkey::client const client(on.uri(), settings);
    auto const lock = client.get_lock(new_name("settings"));
    std::vector<side> const sides{blocking_side("pair", [&] {
      lock.lock();
      lock.unlock();
    })};
    regime const& what = *find_regime("back-to-back");
    sides[0].round(what);
    auto const found = compare(what, on.rounds(), sides, on.server().pid());
    p50.emplace_back(longest, found.sides[0].median_p50());
    cpu.emplace_back(longest, found.sides[0].median_cpu());
  }
  on.draw("busy_poll", "p50 of a pair, us", p50);
  on.draw("busy_poll", "CPU of a pair, us", cpu);
}

// Two clients, each with many callers of one lock: who passes the lock on among his own is quick, and the other waits.
void show_local_handoff(stage& on) {
  std::vector<std::pair<double, double>> rate, wait;
  for (int const streak : {0, 1, 4, 16, 64, 256}) {
    on.say("local_handoff.max_streak " + std::to_string(streak));
    auto settings = quiet_config();
    settings.local_handoff = {streak, 1'000ms};
    settings.local_turns = false;  // what a hand-off costs and gives
    asio::io_context io(1);
    latchkey::client a(io, on.uri(), settings);
    latchkey::client b(io, on.uri(), settings);
    auto const name = new_name("settings");
    std::vector const locks{a.get_lock(name), b.get_lock(name)};
    auto const found = crowd_of_coroutines(io, locks, 32, 1);
    rate.emplace_back(streak, found.per_second);
    wait.emplace_back(streak, found.jain());
    a.close();
    b.close();
  }
  on.draw("local_handoff", "acquisitions a second", rate);
  on.draw("local_handoff fairness", "Jain index", wait);
}

asio::awaitable<void> hold(latchkey::client const& client, latchkey::owner me, std::string prefix, int count) {
  for (int i = 0; i < count; ++i) co_await client.get_lock(prefix + std::to_string(i)).async_lock(me);
}

void show_batch_size(stage& on) {
  constexpr int holds = 2'000;
  auto admin = on.server().admin();
  std::vector<std::pair<double, double>> longest, server;
  for (int const batch : {1, 10, 100, 1'000}) {
    on.say("lock_watchdog_batch_size " + std::to_string(batch));
    auto settings = quiet_config();
    settings.lock_watchdog_batch_size = batch;
    settings.lock_watchdog_timeout = 3'000ms;
    asio::io_context io(1);
    latchkey::client client(io, on.uri(), settings);
    bool done = false;
    asio::co_spawn(io, hold(client, latchkey::owner::make(), new_name("settings") + ":", holds),
                   [&](std::exception_ptr) { done = true; });
    while (!done) io.run_one();
    io.run_for(1'500ms);
    slow_calls calls(admin);
    double const before = script_us(admin);
    for (int i = 0; i < 40; ++i, calls.look()) io.run_for(50ms);
    longest.emplace_back(batch, calls.longest_us());
    server.emplace_back(batch, (script_us(admin) - before) / 2 / holds);
    client.close();
  }
  on.draw("watchdog batch", "longest call, us", longest);
  on.draw("watchdog batch", "server time a second and hold, us", server);
}

}  // namespace

void run_settings(stage& on) {
  show_busy_poll(on);
  show_local_handoff(on);
  show_batch_size(on);
}

}  // namespace bench
