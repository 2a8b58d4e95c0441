// One lock that several processes want all the time: config::local_handoff.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace asio = boost::asio;

namespace {

constexpr int most_processes = 4;

// What the processes share. Only who has the lock writes to what is no flag.
struct board {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, over{false};
  std::atomic<int> holder{-1};
  std::atomic<std::int64_t> changes{0};                           // how often it went from one process to another
  std::array<std::atomic<std::int64_t>, most_processes> times{};  // to each
  std::atomic<std::int64_t> grants{0};                            // by the server, in the end
};

using shared_board = std::unique_ptr<board, void (*)(board*)>;

shared_board make_board() {
  void* const place = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(place != MAP_FAILED);
  return {new (place) board, [](board* one) { ::munmap(one, sizeof(board)); }};
}

asio::awaitable<void> take_turns(distributed_lock lock, board& on, int me, std::int64_t last) {
  auto const self = owner::make();
  while (!on.over) {
    co_await lock.async_lock(self);
    if (on.holder.exchange(me) != me) {
      ++on.times[static_cast<std::size_t>(me)];
      if (++on.changes >= last) on.over = true;
    }
    co_await lock.async_unlock(self);
  }
}

int play(std::string const& uri, std::string const& name, config const& settings, board& on, int me, int callers,
         std::int64_t last) {
  asio::io_context io(1);
  client own(io, uri, settings);
  bool connected = false;
  own.get_lock(name + "-warm").async_is_locked([&](error_code, bool) { connected = true; });
  while (!connected) io.run_one_for(10ms);
  ++on.ready;
  while (!on.go) io.run_one_for(1ms);
  int left = callers;
  for (int i = 0; i < callers; ++i)
    asio::co_spawn(io, take_turns(own.get_lock(name), on, me, last), [&](std::exception_ptr) { --left; });
  while (left > 0) io.run_one_for(10ms);
  auto const all = own.snapshot();
  on.grants += static_cast<std::int64_t>(all.acquired - all.handed_off);
  own.close();
  return 0;
}

}  // namespace

// However fast or slow they are: what counts is who comes after whom. Without the pause after a streak the process that
// gives it back wins it again three times of four, and more often the more there are.
TEST_CASE("streaks: a lock that several processes want all the time goes round among them", "[server]") {
  for (int const processes : {2, most_processes})
    for (bool const turns : {false, true}) {
      CAPTURE(processes, turns);
      config settings = steady_config();
      settings.local_turns = turns;
      std::int64_t const last = 60 * processes;
      auto const uri = common_server().uri();
      auto const name = new_name();
      auto const shared = make_board();
      std::vector<std::unique_ptr<child_process>> all;
      for (int i = 0; i < processes; ++i)
        all.push_back(std::make_unique<child_process>(
            [&, i](child_process::channel&) { return play(uri, name, settings, *shared, i, 4, last); }));
      REQUIRE(wait_until([&] { return shared->ready == processes; }));
      shared->go = true;
      CHECK(wait_until([&] { return shared->over.load(); }));
      shared->over = true;
      for (auto& one : all) CHECK(one->wait() == 0);
      CHECK(shared->grants < 3 * shared->changes);  // it comes back to the same two times of three at most
      for (int i = 0; i < processes; ++i) CHECK(shared->times[static_cast<std::size_t>(i)] >= last / processes / 8);
    }
}
