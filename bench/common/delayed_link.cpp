#include <common/delayed_link.hpp>
#include <support/fault_proxy.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <stdexcept>

namespace bench {
namespace {

int play(latchkey::test::child_process::channel& parent, std::uint16_t server, std::chrono::nanoseconds delay) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // as punctual as an ordinary process can be
  latchkey::test::fault_proxy proxy({{}, server}, true);
  proxy.opaque(true, delay);
  parent.say(std::to_string(proxy.where().port));
  for (;;) ::pause();
}

}  // namespace

delayed_link::delayed_link(std::uint16_t server, std::chrono::microseconds round_trip)
    : process_([=](auto& parent) { return play(parent, server, std::chrono::nanoseconds(round_trip) / 2); }) {
  auto const said = process_.talk().hear();
  if (said.empty()) throw std::runtime_error("the delayed link does not begin");
  port_ = static_cast<std::uint16_t>(std::stoul(said));
}

}  // namespace bench
