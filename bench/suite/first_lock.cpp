#include <common/delayed_link.hpp>
#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/stage.hpp>

#include <chrono>
#include <cmath>

namespace bench {

// Round trips until a new client has its first lock, counted by a link that delays what it carries.

void run_first_lock(stage& on) {
  using namespace std::chrono_literals;
  constexpr auto round_trip = 50ms;
  auto admin = on.server().admin();
  auto const measure = [&](bool known) {
    delayed_link link(on.port(), round_trip);
    // A server that does not know the scripts is asked twice.
    if (!known) admin.ok("SCRIPT", "FLUSH", "SYNC");
    latchkey::client const client(link.uri(), quiet_config());
    auto const lock = client.get_lock(new_name("first_lock"));
    std::int64_t const began = now();
    lock.lock();
    double const took = static_cast<double>(now() - began) * 1e-6;
    lock.unlock();
    // The connection to the link itself takes no time: it counts as one more.
    return std::floor(took / round_trip.count()) + 1;
  };
  on.say("through a link that takes 25 ms each way");
  measure(true);
  on.add({.name = "the server does not know the script", .unit = "round trips", .figure = measure(false), .most = 3});
  on.add({.name = "the server knows the script", .unit = "round trips", .figure = measure(true), .most = 3});
}

}  // namespace bench
