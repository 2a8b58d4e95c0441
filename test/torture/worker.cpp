#include <torture/worker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <thread>

namespace latchkey::torture {

namespace {

// What a call without a wait of its own may take, and what ends later than its wait because it cannot be cut short.
milliseconds limit_of(config const& settings, milliseconds wait) { return wait + longest_call(settings); }

}  // namespace

slot::slot(workplace& in, std::uint8_t kind, std::uint16_t number, bool coroutine)
    : in_(in),
      kind_(kind),
      number_(number),
      coroutine_(coroutine),
      dice_(simulation::mix(in.run.seed, static_cast<std::uint64_t>(in.run.index), in.run.incarnation, number)) {}

// A semaphore of a killed process lacks its permits for ever, so that each is used for a while only.
std::uint32_t slot::current_pool() const {
  return static_cast<std::uint32_t>(now() / pool_life % 1'000'000) * locks_of_a_kind;
}

plan slot::draw() {
  auto const lease = in_.run.lease;
  auto const part = [&](int low, int high) { return lease * dice_.between(low, high) / 100; };
  plan made;
  made.lock = dice_.one_in(4) ? 1 : 0;
  if (kind().who == rule::permits && !kind().leased) made.lock += current_pool();
  made.reads = kind().who == rule::readers_writer && !dice_.one_in(3);
  made.wait = dice_.one_in(10)  ? milliseconds(0)
              : dice_.one_in(5) ? milliseconds(dice_.between(1, 50))
                                : part(100, 1'000);
  if (dice_.one_in(5)) made.lease = std::max(part(5, 150), milliseconds(20));
  made.work = dice_.one_in(200) ? part(10, 250).count() * ms : dice_.one_in(10) ? dice_.between(0, 5) * ms : 0;
  made.same_owner = dice_.one_in(2);
  made.drops = dice_.one_in(10);
  made.reenters = kind().reenters && dice_.one_in(10);
  made.cancels = dice_.one_in(30);
  if (dice_.one_in(50)) made.extends = part(5, 200);
  if (kind().who == rule::alone || kind().who == rule::readers_writer) {
    made.mixes = dice_.one_in(20);
    if (!made.lease && !made.extends && dice_.one_in(30)) made.max_hold = std::max(part(5, 150), milliseconds(20));
    if (coroutine_ && dice_.one_in(100)) made.retakes = 300;
  }
  if (!in_.run.topology.empty()) {
    // What changes the master is the matter, and the machine is to have time for it.
    made.work = dice_.one_in(300) ? part(250, 250).count() * ms : dice_.between(0, 20 * ms);
    made.rest = dice_.between(0, 300 * ms);
    made.retakes = 0;
    made.wait = std::min(made.wait, part(500, 500));
  }
  return made;
}

plan slot::last(std::uint32_t lock) const {
  plan made;
  made.lock = lock;
  if (kind().who == rule::permits && !kind().leased) made.lock += current_pool();
  made.wait = last_wait;
  return made;
}

record slot::line(what happened) const {
  record made;
  made.what = happened;
  made.section = section_;
  made.kind = kind_;
  made.slot = number_;
  made.lock = lock_;
  return made;
}

void slot::ask(plan const& what) {
  section_ = in_.log.new_section();
  lock_ = what.lock;
  auto made = line(what::ask);
  made.a = what.wait.count() * ms;
  made.b = what.lease ? what.lease->count() * ms : what.max_hold ? what.max_hold->count() * ms : 0;
  made.c = limit_of(in_.settings, what.wait).count() * ms;
  made.code = (what.reads ? mode::shared : 0u) | (what.wait == last_wait ? mode::final_round : 0u) |
              (coroutine_ ? mode::coroutine : 0u);
  in_.log.write(made);
}

void slot::granted(std::uint64_t token) {
  auto made = line(what::granted);
  made.a = static_cast<std::int64_t>(token);
  in_.log.write(made);
}

void slot::refused(error_code const& why) {
  auto made = line(what::refused);
  made.code = static_cast<std::uint32_t>(why.value());
  in_.log.write(made);
}

void slot::leave(std::int64_t trusted, std::uint32_t told, std::int64_t longest_lease) {
  auto made = line(what::leave);
  made.a = trusted;
  made.b = longest_lease;
  made.c = limit_of(in_.settings, {}).count() * ms;
  made.code = told;
  in_.log.write(made);
}

void slot::released(outcome how) {
  auto made = line(what::released);
  made.code = static_cast<std::uint32_t>(how);
  in_.log.write(made);
  auto& mine = in_.shared.sections[static_cast<std::size_t>(in_.run.index)];
  mine.fetch_add(1, std::memory_order_relaxed);
}

void slot::released(error_code const& why) {
  released(static_cast<outcome>(static_cast<std::uint32_t>(outcome::error) + static_cast<std::uint32_t>(why.value())));
}

void slot::begin(call which, std::uint32_t lock, milliseconds limit) {
  section_ = in_.log.new_section();
  lock_ = lock;
  auto made = line(what::begin);
  made.c = limit.count() * ms;
  made.code = static_cast<std::uint32_t>(which);
  in_.log.write(made);
}

void slot::end(error_code const& why, std::int64_t value) {
  auto made = line(what::end);
  made.code = static_cast<std::uint32_t>(why.value());
  made.a = value;
  in_.log.write(made);
}

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

// Where a worker stands still and nobody has stopped it, the machine has other things to do.
void note_stalls(std::stop_token over, workplace& in) {
  constexpr std::int64_t nap = 20 * ms, longest_nap = 200 * ms;
  while (!over.stop_requested()) {
    record line;
    line.what = what::pause;
    line.a = now();
    std::this_thread::sleep_for(std::chrono::nanoseconds(nap));
    line.b = now();
    line.c = in.run.index;
    if (line.b - line.a > longest_nap) in.log.write(line);
  }
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
  if (run.index % 2 == 0) settings.local_handoff.warm_up = 0;  // local turns from the first hold on
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
    std::jthread const ticks([&](std::stop_token over) { note_stalls(std::move(over), in); });
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
