#include <torture/lock_coroutine.hpp>
#include <torture/slot.hpp>
#include <torture/worker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <deque>
#include <filesystem>
#include <thread>

namespace latchkey::torture {

namespace {

int open_descriptors() {
  std::error_code ignored;
  int count = 0;
  for (std::filesystem::directory_iterator one("/proc/self/fd", ignored), end; one != end; ++one) ++count;
  return count;
}

struct sums {
  std::int64_t held = 0, waiting = 0, in_doubt = 0, subscriptions = 0;
  bool any() const { return held != 0 || waiting != 0 || in_doubt != 0 || subscriptions != 0; }
};

sums look(std::vector<client> const& clients) {
  sums made;
  for (auto const& one : clients) {
    auto const seen = one.snapshot();
    made.held += static_cast<std::int64_t>(seen.held);
    made.waiting += static_cast<std::int64_t>(seen.waiting);
    made.in_doubt += static_cast<std::int64_t>(seen.in_doubt);
    made.subscriptions += static_cast<std::int64_t>(seen.subscriptions);
  }
  return made;
}

// A channel is kept for a while for the next waiter, and what nobody wants is given back in the background.
void come_to_rest(workplace& in) {
  auto const end = now() + in.run.lease.count() * 3 * ms + 5 * second;
  sums left = look(in.clients);
  while (left.any() && now() < end) {
    std::this_thread::sleep_for(milliseconds(20));
    left = look(in.clients);
  }
  record line;
  line.what = what::rest;
  line.a = left.held;
  line.b = left.waiting;
  line.c = left.in_doubt;
  line.code = static_cast<std::uint32_t>(left.subscriptions);
  in.log.write(line);
}

// A process may begin while it is allowed no descriptors.
template <class Make>
void patiently(Make const& make) {
  auto const end = now() + 10 * second;
  for (;;) try {
      return make();
    } catch (std::exception const&) {
      if (now() > end) throw;
      std::this_thread::sleep_for(milliseconds(10));
    }
}

void run_thread(slot& own) {
  if (own.kind().make) return run_lock_thread(own);
  if (own.kind().who == rule::rounds) return run_latch_thread(own);
  own.kind().leased ? run_permit_thread(own) : run_semaphore_thread(own);
}

void run_slots(workplace& in) {
  std::deque<slot> slots;
  std::vector<std::jthread> threads;
  asio::io_context io;
  patiently([&] { asio::steady_timer const first(io); });
  std::uint16_t number = 0;
  for (auto kind : in.run.kinds) {
    auto& blocking = slots.emplace_back(in, kind, number++, false);
    threads.emplace_back([&blocking] { run_thread(blocking); });
    if (!blocking.kind().make) continue;
    auto& other = slots.emplace_back(in, kind, number++, true);
    asio::co_spawn(io, run_lock_coroutine(other), [](std::exception_ptr problem) {
      if (problem) std::rethrow_exception(problem);
    });
  }
  io.run();
}

}  // namespace

int run_worker(options const& run) {
  history_writer log(worker_file(run.folder, run.index, run.incarnation));
  record line;
  line.what = what::born;
  line.a = run.index;
  line.b = run.incarnation;
  line.c = ::getpid();
  log.write(line);
  auto& shared = map_board(board_file(run.folder));
  auto settings = worker_config(run);
  settings.on_event = [&](event const& one) {
    record seen;
    seen.what = what::disconnected;
    if (one.type == event_type::disconnected) log.write(seen);
    if (one.type == event_type::lost) ++shared.lost[static_cast<std::size_t>(run.index)];
  };
  int const descriptors = open_descriptors();
  {
    std::vector<client> clients;
    for (auto const& one : run.servers) patiently([&] { clients.emplace_back(one, settings); });
    workplace in{run, shared, log, clients, settings};
    run_slots(in);
    come_to_rest(in);
    slot closing(in, 0, 0, false);
    for (auto& one : clients) {
      closing.begin(call::close, 0, settings.close_timeout);
      one.close();
      closing.end({});
    }
  }
  line = record();
  line.what = what::over;
  line.a = open_descriptors() - descriptors;
  log.write(line);
  return 0;
}

}  // namespace latchkey::torture
