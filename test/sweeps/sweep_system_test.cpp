// Case 87 for every kind: no descriptors from the n-th on, and signals that interrupt every call of the system.
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <sweeps/uses.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <optional>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// A signal to this thread, every now and then, whose handler does nothing.
class signal_storm {
 public:
  signal_storm() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) { ++caught; };
    ::sigaction(SIGALRM, &nothing, &old_);  // without SA_RESTART
    itimerval const often{{0, 300}, {0, 300}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~signal_storm() {
    itimerval const never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &old_, nullptr);
  }
  signal_storm(signal_storm const&) = delete;
  signal_storm& operator=(signal_storm const&) = delete;

  static inline std::atomic<int> caught{0};

 private:
  struct sigaction old_ {};
};

}  // namespace

TEST_CASE("case 87: every use of every kind in a storm of signals", "[server][case-87]") {
  auto const own = one_client(steady_config());
  auto const began = signal_storm::caught.load();
  for (int round = 0; round < 20 || signal_storm::caught - began < 200; ++round) {
    REQUIRE(round < 2'000);
    for (auto const& what : every_use()) {
      INFO(what.kind << ": " << what.what);
      signal_storm const storm;
      CHECK_NOTHROW(what.run(own, new_name()));
    }
  }
}

// UndefinedBehaviorSanitizer, which comes with AddressSanitizer here, looks at objects through a pipe, and takes for
// broken what it cannot look at.
#ifndef __SANITIZE_ADDRESS__

namespace {

// As long as it lives, so many more descriptors can be opened.
class few_descriptors {
 public:
  explicit few_descriptors(unsigned more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &old_) == 0);
    // The lowest free one; there may be free ones above it, which count for less.
    int const next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(next >= 0);
    ::close(next);
    rlimit const some{static_cast<rlim_t>(next) + more, old_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &some) == 0);
  }
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &old_); }
  few_descriptors(few_descriptors const&) = delete;
  few_descriptors& operator=(few_descriptors const&) = delete;

 private:
  rlimit old_{};
};

// True: neither making a client nor using it failed.
bool use_with(unsigned descriptors, use const& what, std::optional<clients>& own, std::string const& name) try {
  few_descriptors const limit(descriptors);
  struct restored {
    ~restored() { sweep_wait = patience; }
  } const at_the_end;
  sweep_wait = 100ms * slowness;
  own.emplace(one_client());
  what.run(*own, name);
  return true;
} catch (boost::system::system_error const& problem) {
  auto const& code = problem.code();
  INFO(problem.what());
  CHECK((code == errc::connect_failed || code == errc::timeout || code == errc::connection_lost ||
         code == boost::system::errc::too_many_files_open));
  return false;
}

}  // namespace

TEST_CASE("case 87: every kind with no descriptors from the n-th on", "[server][case-87]") {
  common_server();  // needs some itself
  for (auto const& what : every_use()) {
    // What else locks can do needs no other descriptors than these two.
    if (what.is_lock && what.what != "acquire, extend, release" && what.what != "async_acquire, async_release")
      continue;
    unsigned n = 0;
    for (bool passed = false; !passed; ++n) {
      INFO(what.kind << ": " << what.what << ", " << n << " descriptors");
      REQUIRE(n < 40);
      std::optional<clients> own;
      auto const name = new_name();
      passed = use_with(n, what, own, name);
      // With descriptors the same client works, if there is one.
      if (!own) own.emplace(one_client());
      what.run(*own, new_name());
      if (what.is_free) CHECK(wait_until([&] { return what.is_free(*own, name); }));
    }
    CHECK(n > 3);
  }
}

#endif

// Cases 80 and 81 for every kind: a call that waits is cancelled, or its client goes away, after every handler.

namespace {

enum class fate { cancelled, destroyed };

// True: the call had ended before anything befell it.
bool end_after(int steps, waiting_call const& call, fate what, clients const& theirs) {
  asio::io_context io;
  event_log log;
  clients own;
  own.emplace_back(io, common_server().uri(), steady_config(log));
  auto const name = new_name();
  auto release = call.occupy(theirs, name);
  int completions = 0;
  error_code result;
  asio::cancellation_signal signal;
  call.begin(own, name, signal.slot(), [&](error_code error) {
    ++completions;
    result = error;
  });
  for (int i = 0; i < steps && completions == 0; ++i) {
    io.restart();
    bool const idle = io.run_one_for(20ms) == 0;
    if (release && (idle || log.count(event_type::waiting) > 0)) std::exchange(release, nullptr)();
  }
  bool const before = completions == 1;
  if (what == fate::cancelled)
    signal.emit(asio::cancellation_type::total);
  else
    own.clear();
  CHECK(run_until(io, [&] { return completions == 1; }));
  if (!before) CHECK((!result || result == asio::error::operation_aborted || result == errc::closed));
  if (release) release();
  if (!result && call.give_back) call.give_back(theirs, name);
  if (call.is_free) CHECK(run_until(io, [&] { return call.is_free(theirs, name); }));
  if (!own.empty()) {
    auto const rest = [&] {
      auto const seen = own[0].snapshot();
      return seen.held + seen.waiting + seen.in_doubt == 0;
    };
    CHECK(run_until(io, rest));
  }
  CHECK(completions == 1);
  // To the end of what it has to say to the server.
  own.clear();
  io.restart();
  io.run_for(patience);
  return before;
}

void end_everywhere(fate what) {
  clients theirs;
  theirs.emplace_back(common_server().uri(), steady_config());
  for (auto const& call : every_waiting_call()) {
    int steps = 0;
    for (bool before = false; !before; ++steps) {
      INFO(call.kind << ", after " << steps << " handlers");
      REQUIRE(steps < 300);
      before = end_after(steps, call, what, theirs);
    }
    INFO(call.kind);
    CHECK(steps > 4);
  }
}

}  // namespace

TEST_CASE("case 81: a call of any kind cancelled after any number of steps", "[server][case-81]") {
  end_everywhere(fate::cancelled);
}

TEST_CASE("case 80: a client that goes away after any number of steps of a call of any kind", "[server][case-80]") {
  end_everywhere(fate::destroyed);
}
