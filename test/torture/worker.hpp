#pragma once

#include <latchkey/client.hpp>
#include <simulation/randomness.hpp>
#include <torture/history.hpp>
#include <torture/kinds.hpp>
#include <torture/options.hpp>

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <thread>
#include <vector>

namespace latchkey::torture {

// What all slots of a worker process share.
struct workplace {
  options const& run;
  board& shared;
  history_writer& log;
  std::vector<client>& clients;  // one per server
  config settings;
};

// What a section is going to be; drawn before it begins.
struct plan {
  std::uint32_t lock = 0;
  bool reads = false;   // the read side
  milliseconds wait{};  // zero: one attempt
  std::optional<milliseconds> lease;
  std::int64_t work = 0;    // nanoseconds
  std::int64_t rest = 0;    // afterwards
  bool same_owner = false;  // as in other sections of this slot
  bool drops = false;       // leaves the release to the destructor
  bool reenters = false;
  bool cancels = false;
  bool mixes = false;  // calls unlock() beside, which has nothing to end
  int retakes = 0;     // drops it, and takes it again at once, so often
  std::optional<milliseconds> max_hold;
  std::optional<milliseconds> extends;
};

// One thread or coroutine of a worker: draws what to do and writes down what came of it.
class slot {
 public:
  slot(workplace& in, std::uint8_t kind, std::uint16_t number, bool coroutine);

  workplace& in() { return in_; }
  torture_kind const& kind() const { return torture_kinds()[kind_]; }
  simulation::dice& dice() { return dice_; }
  owner const& who() const { return who_; }
  board::phase phase() const { return static_cast<board::phase>(in_.shared.now_is.load()); }

  plan draw();
  // For the last round: every lock once, with patience.
  plan last(std::uint32_t lock) const;

  // --- the history of one section ---
  void ask(plan const& what);
  void granted(std::uint64_t token);
  void refused(error_code const& why);
  void leave(std::int64_t trusted, std::uint32_t told, std::int64_t longest_lease);
  void released(outcome how);
  void released(error_code const& why);
  // --- of another call ---
  void begin(call which, std::uint32_t lock, milliseconds limit);
  void end(error_code const& why, std::int64_t value = 0);

  // Is this section a pretended one?
  bool ignores_exclusion() { return in_.run.broken == broken::ignore && dice_.one_in(20); }
  // Does a caller of a short wait hear of its end long after?
  bool hears_late(plan const& what) { return in_.run.broken == broken::slow && what.wait < milliseconds(100); }
  bool releases_early() const { return in_.run.broken == broken::early; }
  // The nesting of a re-entry has a history of its own.
  std::uint64_t section() const { return section_; }

 private:
  record line(what happened) const;
  std::uint32_t current_pool() const;

  workplace& in_;
  std::uint8_t const kind_;
  std::uint16_t const number_;
  bool const coroutine_;
  simulation::dice dice_;
  owner const who_ = owner::make();
  std::uint64_t section_ = 0;
  std::uint32_t lock_ = 0;
};

// After these seconds nothing that works still waits.
constexpr milliseconds last_wait{20'000};

// Runs sections until the board says otherwise, then the last round. A thread's whole life.
void run_lock_thread(slot& own);
void run_permit_thread(slot& own);
void run_semaphore_thread(slot& own);
void run_latch_thread(slot& own);

// A holder at work who asks now and then whether he still holds, as docs/safety.md says that he is to.
template <class Holding>
class watch {
 public:
  watch(Holding const& held, std::int64_t work) : held_(held), end_(now() + work), lost_(held.lost()) {}

  // Asks once. True: the work goes on, and pause() says how long until the next question.
  bool look() {
    auto const at = now();
    // The time is read before the question, so that he was right to trust at that time.
    if (!gone_ && held_.held())
      trusted_ = at;
    else
      gone_ = true;
    if (lost_.stop_requested()) told_ |= told_by_lost;
    if (!gone_) return at < end_ && !(told_ & told_by_lost);
    told_ |= told_by_held;
    if (told_ & told_by_lost) return false;
    // Counted and not timed: the process may be stopped for a while.
    if (++looks_without_ < most_looks) return true;
    told_ |= told_silently;
    return false;
  }
  milliseconds pause() const { return milliseconds(gone_ ? 1 : 2); }

  std::int64_t trusted() const { return trusted_; }
  std::uint32_t told() const { return told_; }

 private:
  static constexpr int most_looks = 3'000;

  Holding const& held_;
  std::int64_t const end_;
  std::stop_token const lost_;
  std::int64_t trusted_ = 0;
  std::uint32_t told_ = told_not;
  bool gone_ = false;
  int looks_without_ = 0;
};

template <class Holding>
watch<Holding> work_inside(Holding const& held, std::int64_t work) {
  watch<Holding> at_work(held, work);
  while (at_work.look()) std::this_thread::sleep_for(at_work.pause());
  return at_work;
}

// Leaves the machine to others, if the plan says so.
inline void rest_after(plan const& what) {
  if (what.rest > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(what.rest));
}

// Who holds nothing and believes that he does.
struct pretended {
  bool held() const { return true; }
  std::stop_token lost() const { return {}; }
};

// As run_lock_thread, with asynchronous calls.
asio::awaitable<void> run_lock_coroutine(slot& own);

// The whole life of a worker process. Gives its exit code.
int run_worker(options const& run);

}  // namespace latchkey::torture
