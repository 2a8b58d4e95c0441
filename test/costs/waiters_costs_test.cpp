// What a client costs that has very many waiters, of every kind.
#include <costs/costs.hpp>
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>

#include <time.h>

#include <cstdio>
#include <functional>
#include <list>

using namespace latchkey;
using namespace latchkey::test;

namespace {

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A lock kind, who keeps it from its waiters, and how one begins to wait.
struct waited_for {
  char const* kind;
  std::function<std::shared_ptr<void>(client&, std::string const&)> occupy;
  std::function<void(client&, std::string const&, asio::cancellation_slot)> wait;
};

template <class Held, class Wanted>
waited_for waited_for_lock(char const* kind, Held held, Wanted wanted) {
  return {kind, [held](client& c, std::string const& name) { return std::make_shared<lease>(held(c, name).acquire()); },
          [wanted](client& c, std::string const& name, asio::cancellation_slot slot) {
            wanted(c, name).async_lock(owner::make(), asio::bind_cancellation_slot(slot, [](error_code) {}));
          }};
}

std::vector<waited_for> all_kinds() {
  auto const plain = [](client& c, std::string const& n) { return c.get_lock(n); };
  auto const fair = [](client& c, std::string const& n) { return c.get_fair_lock(n); };
  auto const spin = [](client& c, std::string const& n) { return c.get_spin_lock(n); };
  auto const write = [](client& c, std::string const& n) { return c.get_read_write_lock(n).write_lock(); };
  auto const read = [](client& c, std::string const& n) { return c.get_read_write_lock(n).read_lock(); };
  std::vector<waited_for> made{waited_for_lock("lock", plain, plain), waited_for_lock("fair", fair, fair),
                               waited_for_lock("spin", spin, spin), waited_for_lock("read", write, read),
                               waited_for_lock("write", read, write)};
  made.push_back({"semaphore",
                  [](client& c, std::string const& n) {
                    c.get_semaphore(n).try_set_permits(1);
                    c.get_semaphore(n).acquire();
                    return std::shared_ptr<void>();
                  },
                  [](client& c, std::string const& n, asio::cancellation_slot slot) {
                    c.get_semaphore(n).async_acquire(1, asio::bind_cancellation_slot(slot, [](error_code) {}));
                  }});
  made.push_back({"permits",
                  [](client& c, std::string const& n) {
                    c.get_permit_semaphore(n).try_set_permits(1);
                    return std::make_shared<std::string>(c.get_permit_semaphore(n).acquire());
                  },
                  [](client& c, std::string const& n, asio::cancellation_slot slot) {
                    c.get_permit_semaphore(n).async_acquire(
                        asio::bind_cancellation_slot(slot, [](error_code, std::string) {}));
                  }});
  made.push_back({"latch",
                  [](client& c, std::string const& n) {
                    c.get_count_down_latch(n).try_set_count(1);
                    return std::shared_ptr<void>();
                  },
                  [](client& c, std::string const& n, asio::cancellation_slot slot) {
                    c.get_count_down_latch(n).async_wait(asio::bind_cancellation_slot(slot, [](error_code) {}));
                  }});
  return made;
}

struct crowd {
  redis_server own_server;
  client holder{own_server.uri(), exact_config()};
  asio::io_context io{1};
  client waits{io, own_server.uri(), exact_config()};
  std::list<asio::cancellation_signal> signals;
  std::vector<std::shared_ptr<void>> occupied;

  ~crowd() { waits.close(); }

  // CPU seconds of so many waiters that come at once.
  double come(waited_for const& kind, std::string const& name, std::uint64_t count) {
    occupied.push_back(kind.occupy(holder, name));
    auto const waiting = waits.snapshot().waiting + count;
    double const began = cpu_seconds();
    for (std::uint64_t i = 0; i < count; ++i) kind.wait(waits, name, signals.emplace_back().slot());
    REQUIRE(run_until(
        io, [&] { return at_rest(waiting); }, 4 * patience));
    resolve();
    return cpu_seconds() - began;
  }

  // The tries and the subscriptions are made, and what leaves a line has left it.
  void resolve() {
    io.restart();
    io.run_for(1s * slowness);
  }

  bool at_rest(std::uint64_t waiting) {
    auto const now = waits.snapshot();
    return now.waiting == waiting && now.in_doubt == 0;
  }
};

}  // namespace

TEST_CASE("a client with a thousand waiters of each kind: CPU and commands", "[costs]") {
  constexpr std::uint64_t many = 1'000;
  crowd all;
  for (auto const& kind : all_kinds()) all.come(kind, new_name(), many);
  all.io.run_for(1s);  // the tries that follow the subscriptions
  auto const commands = all.waits.snapshot().commands;
  double const began = cpu_seconds();
  all.io.run_for(10s);
  double const spent = (cpu_seconds() - began) / 10;
  auto const sent = static_cast<double>(all.waits.snapshot().commands - commands) / 10;
  std::printf("1,000 waiters of each kind: %.2f %% of a core, %.0f commands a second\n", 100 * spent, sent);
  CHECK(spent <= 0.05 * slowness);
  CHECK(sent <= 200);
}

TEST_CASE("waiters of every kind come and go without regard to how many there are: CPU of one", "[costs]") {
  for (auto const& kind : all_kinds()) {
    CAPTURE(kind.kind);
    double of_one[2]{};
    double gone[2]{};
    std::uint64_t const counts[]{1'000, 10'000};
    for (int i = 0; i < 2; ++i) {
      crowd one;
      of_one[i] = one.come(kind, new_name(), counts[i]) / static_cast<double>(counts[i]);
      double const began = cpu_seconds();
      for (auto& signal : one.signals) signal.emit(asio::cancellation_type::total);
      REQUIRE(run_until(
          one.io, [&] { return one.at_rest(0); }, 4 * patience));
      one.resolve();
      gone[i] = (cpu_seconds() - began) / static_cast<double>(counts[i]);
    }
    std::printf("%-10s a waiter of 1,000 / 10,000 comes: %5.1f / %5.1f us, goes: %5.1f / %5.1f us\n", kind.kind,
                of_one[0] * 1e6, of_one[1] * 1e6, gone[0] * 1e6, gone[1] * 1e6);
    CHECK(of_one[1] <= 3 * of_one[0] + 20e-6);
    CHECK(gone[1] <= 3 * gone[0] + 20e-6);
  }
}
