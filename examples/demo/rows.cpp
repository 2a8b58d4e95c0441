#include "options.hpp"
#include "redis.hpp"
#include "worker.hpp"

#include <latchkey/error.hpp>
#include <latchkey/latchkey.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace demo {

/// Serves `wanted`, and writes down what an exception means for it. False: the caller should take no more requests.
template <class Serve>
bool serve_and_record(worker& self, request& wanted, Serve serve) {
  try {
    serve();
    return true;
  } catch (latchkey::lock_error const& error) {
    note_error(self.record(), error.what());
    error.code() == latchkey::errc::lease_lost ? wanted.lost() : wanted.failed();
  } catch (std::exception const& error) {
    note_error(self.record(), error.what());
    wanted.failed();
  }
  return false;
}

/// Runs the worker's share of requests at a time, each in a thread with a shop of its own, until there are no more.
/// `make_serve(shop&, thread number)` gives each thread the function `void(request&)` that serves.
template <class MakeServe>
void run_threads(worker& self, MakeServe make_serve) {
  std::latch connected(self.share());
  std::latch go(1);
  std::vector<std::jthread> threads;
  std::atomic<bool> broken = false;

  auto const contend = [&](std::uint32_t number) {
    std::optional<shop> counter;
    try {
      counter.emplace(self.socket_path(), self.think());
    } catch (std::exception const& error) {
      note_error(self.record(), error.what());
      broken = true;
    }
    connected.count_down();
    go.wait();
    if (broken) return;
    auto serve = make_serve(*counter, number);
    while (auto wanted = next_request(self.shared())) {
      if (!serve_and_record(self, *wanted, [&] { serve(*wanted); })) return;
    }
  };

  try {
    for (std::uint32_t i = 0; i < self.share(); ++i) threads.emplace_back(contend, i);
  } catch (...) {
    // Those that run already must come to their end before the latches go.
    broken = true;
    go.count_down();
    throw;
  }
  connected.wait();
  if (!broken) self.ready_and_wait();
  go.count_down();
  threads.clear();
  if (!broken) self.finished();
}

namespace {

using namespace std::chrono_literals;
using enum pause_kind;

constexpr std::array<row, 10> rows{{
    {"no-lock", "no lock", "nothing keeps the requests apart", way::no_lock},
    {"busy-yield",
     "SET NX, busy then yield",
     "try again at once for 600 ms, then yield between attempts",
     way::recipe,
     {none, 600ms, yield, 0ms}},
    {"yield-sleep",
     "SET NX, yield then sleep",
     "yield between attempts for 600 ms, then sleep 200 ms",
     way::recipe,
     {yield, 600ms, sleep, 200ms}},
    {"sleep-200ms", "SET NX, sleep 200 ms", "sleep 200 ms between attempts", way::recipe, {none, 0ms, sleep, 200ms}},
    {"sleep-2s", "SET NX, sleep 2 s", "sleep 2 s between attempts", way::recipe, {none, 0ms, sleep, 2000ms}},
    {"yield", "SET NX, always yield", "yield between attempts", way::recipe, {none, 0ms, yield, 0ms}},
    {"threads", "latchkey, threads", "each request blocks its thread in acquire()", way::latchkey_threads},
    {"coroutines", "latchkey, coroutines", "each request is a coroutine, one thread per process",
     way::latchkey_coroutines},
    {"recursion", "latchkey, recursive", "the outer and the inner function take the lock", way::latchkey_recursion},
    {"deep",
     "latchkey, 10 deep",
     "ten functions, each inside the other, take the lock",
     way::latchkey_recursion,
     {},
     10},
}};

}  // namespace

std::span<row const> all_rows() { return rows; }

std::optional<std::size_t> find_row(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

std::string row_names() {
  std::string names;
  for (auto const& each : rows) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

namespace {

// For a master that dies. With the defaults a failover that loses what is on its way makes two holders, and a release
// is waited for two seconds, which are over before another master is elected.
latchkey::config settings_of(worker const& self) {
  latchkey::config settings;
  if (self.shared()->synced) {
    settings.min_synced_replicas = -1;
    settings.close_timeout = std::chrono::seconds(20);
  }
  return settings;
}

// One client for all threads of this process, connected before the clock starts, as the other connections are.
latchkey::client connected_client(worker const& self) {
  latchkey::client client(self.locks(), settings_of(self));
  static_cast<void>(client.get_lock(lock_key).is_locked());
  return client;
}

// Nothing may be written under a lock that is no longer ours.
void require_held(latchkey::lease const& hold) {
  if (!hold.held()) throw latchkey::lock_error(latchkey::errc::lease_lost);
}

// If its answer was lost with a master nobody can say whether the hold was there to its end. Then the stock tells.
bool ended_well(latchkey::release_result ended) {
  return ended == latchkey::release_result::released || ended == latchkey::release_result::unknown;
}

// A request of two functions or more that all need the lock, and each of which may be called alone.
class recursive_request {
 public:
  recursive_request(latchkey::distributed_lock lock, shop& counter, int levels)
      : lock_(std::move(lock)), shop_(counter), levels_(levels) {}

  void operator()(request& wanted) const {
    if (!lock_.try_lock(wanted.ms_left())) return wanted.gave_up();
    wanted.granted();
    bool const bought = sell(levels_ - 1);
    lock_.unlock();
    wanted.done(bought);
  }

 private:
  bool sell(int levels) const {
    lock_.lock();
    bool const bought = levels > 1 ? sell(levels - 1) : shop_.sell_one();
    lock_.unlock();
    return bought;
  }

  latchkey::distributed_lock lock_;
  shop& shop_;
  int levels_;
};

}  // namespace

void run_latchkey_threads(worker& self) {
  auto const client = connected_client(self);
  run_threads(self, [lock = client.get_lock(lock_key)](shop& counter, std::uint32_t) {
    return [&counter, lock](request& wanted) {
      auto hold = lock.acquire({.wait = wanted.ms_left()});
      if (!hold) return wanted.gave_up();
      wanted.granted();
      bool const bought = counter.sell_one([&] { require_held(hold); });
      if (!ended_well(hold.release())) return wanted.lost();
      wanted.done(bought);
    };
  });
}

void run_latchkey_recursion(worker& self) {
  auto const client = connected_client(self);
  int const levels = all_rows()[self.shared()->row].levels;
  run_threads(self, [lock = client.get_lock(lock_key), levels](shop& counter, std::uint32_t) {
    return recursive_request(lock, counter, levels);
  });
}

namespace {

using clock = std::chrono::steady_clock;

// Long enough to outlive every row but the slowest: what the rows show is the retrying, not leases that run out.
constexpr std::chrono::milliseconds recipe_lease{30'000};

// The widely copied lock: SET NX PX to take it, try again until it works, compare and delete to give it back.
class recipe_lock {
 public:
  recipe_lock(redis& connection, std::string token, retry_rule const& rule)
      : redis_(connection), token_(std::move(token)), rule_(rule) {}

  // False: the time was over first.
  bool lock(request const& wanted) {
    auto const first_attempt = clock::now();
    while (!redis_.set_if_absent(lock_key, token_, recipe_lease)) {
      auto const left = wanted.time_left();
      if (left <= left.zero()) return false;
      switch (pause_now(rule_, clock::now() - first_attempt)) {
        case pause_kind::none: break;
        case pause_kind::yield: std::this_thread::yield(); break;
        case pause_kind::sleep:
          std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(rule_.sleep, left));
          break;
      }
    }
    return true;
  }

  void unlock() { redis_.compare_and_delete(lock_key, token_); }

 private:
  redis& redis_;
  std::string token_;
  retry_rule rule_;
};

}  // namespace

void run_no_lock(worker& self) {
  run_threads(self, [](shop& counter, std::uint32_t) {
    return [&counter](request& wanted) {
      wanted.granted();
      wanted.done(counter.sell_one());
    };
  });
}

void run_recipe(worker& self) {
  auto const rule = all_rows()[self.shared()->row].retry;
  run_threads(self, [&](shop& counter, std::uint32_t number) {
    auto const token = std::to_string(self.index()) + ":" + std::to_string(number);
    return [&counter, lock = recipe_lock(counter.connection(), token, rule)](request& wanted) mutable {
      if (!lock.lock(wanted)) return wanted.gave_up();
      wanted.granted();
      bool const bought = counter.sell_one();
      lock.unlock();
      wanted.done(bought);
    };
  });
}

namespace {

namespace asio = boost::asio;

// All requests of this process run in one thread. Only one of them has the lock, so one connection to the shop is
// enough, and its short blocking calls keep nobody waiting who could go on; the thinking is a timer.
asio::awaitable<void> serve(latchkey::distributed_lock const& lock, shop& counter, request& wanted) {
  latchkey::acquire_options options;
  options.wait = wanted.ms_left();
  auto hold = co_await lock.async_acquire(options, asio::use_awaitable);
  if (!hold) co_return wanted.gave_up();
  wanted.granted();

  auto const stock = counter.read_stock();
  if (stock > 0) {
    asio::steady_timer thinking(co_await asio::this_coro::executor, counter.think_time());
    co_await thinking.async_wait(asio::use_awaitable);
    if (!hold.held()) co_return wanted.lost();
    counter.write_stock(stock - 1);
  }

  auto const released = co_await hold.async_release(asio::use_awaitable);
  if (!ended_well(released)) co_return wanted.lost();
  wanted.done(stock > 0);
}

asio::awaitable<void> contend(worker& self, latchkey::distributed_lock lock, shop& counter) {
  while (auto wanted = next_request(self.shared())) {
    try {
      co_await serve(lock, counter, *wanted);
    } catch (std::exception const& error) {
      note_error(self.record(), error.what());
      wanted->failed();
      co_return;
    }
  }
}

}  // namespace

void run_latchkey_coroutines(worker& self) {
  asio::io_context context(1);
  latchkey::client client(context, self.locks(), settings_of(self));
  shop counter(self.socket_path(), self.think());
  auto const lock = client.get_lock(lock_key);

  // Connect before the clock starts, as the other rows do.
  bool connected = false;
  latchkey::error_code connect_error;
  lock.async_is_locked([&](latchkey::error_code error, bool) {
    connected = true;
    connect_error = error;
  });
  while (!connected) context.run_one();
  if (connect_error) throw latchkey::lock_error(connect_error);

  self.ready_and_wait();
  auto running = self.share();
  for (std::uint32_t i = 0; i < self.share(); ++i) {
    asio::co_spawn(context, contend(self, lock, counter), [&running](std::exception_ptr) { --running; });
  }
  while (running > 0) context.run_one();
  self.finished();
}

}  // namespace demo
