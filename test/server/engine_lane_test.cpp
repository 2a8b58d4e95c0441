#include <base/clock.hpp>
#include <engine/direct_lane.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// The connection that a blocked caller borrows, with a peer that is no server.

namespace {

// Interrupts what the calling thread waits for, more often than the lane wakes up by itself; for three seconds at
// most, or as much longer as everything is slower.
class interruptions {
 public:
  interruptions() {
    struct sigaction act {};
    act.sa_handler = [](int) {};
    ::sigaction(SIGUSR2, &act, &before_);
    thread_ = std::jthread([of = ::pthread_self()](std::stop_token const& stop) {
      for (int i = 0; i < 3'000 * test::slowness && !stop.stop_requested(); ++i) {
        ::pthread_kill(of, SIGUSR2);
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  ~interruptions() {
    thread_ = {};
    ::sigaction(SIGUSR2, &before_, nullptr);
  }
  interruptions(interruptions const&) = delete;
  interruptions& operator=(interruptions const&) = delete;

 private:
  struct sigaction before_ {};
  std::jthread thread_;
};

}  // namespace

TEST_CASE("lane: a wait ends in time although signals interrupt what cannot be sent", "[server][edge-13]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  direct_lane lane(1, ends[0], nullptr, 10s, 0us);
  std::string request(8 << 20, 'x');
  lane.take(request);
  wake_flag const over;
  interruptions const signals;
  auto const began = boot_now();
  CHECK(lane.exchange(began, after(began, 200ms), over) == errc::timeout);
  CHECK(boot_now() - began < 1s * test::slowness);
  ::close(ends[1]);
}
