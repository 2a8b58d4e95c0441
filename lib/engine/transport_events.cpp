#include <engine/transport.hpp>

namespace latchkey::detail {

// What sockets report goes to the machine as it is. Each handler is a thread inside the client's executor: an event
// callback that blocks there is told so.

void transport::on_opened(connection& which) {
  executor_probe::mark const here(core_->threads().probe());
  core_->machine_steps().take(
      [&](client_machine& machine, instant now, actions& out) { machine.opened(which.serial(), now, out); });
}

void transport::on_open_failed(connection& which, error_code const& why, std::string const& text) {
  executor_probe::mark const here(core_->threads().probe());
  std::uint32_t const serial = which.serial();
  forget(serial);
  core_->machine_steps().take(
      [&](client_machine& machine, instant now, actions& out) { machine.open_failed(serial, why, text, now, out); });
}

void transport::on_received(connection& which, std::string_view bytes) {
  executor_probe::mark const here(core_->threads().probe());
  core_->machine_steps().take(
      [&](client_machine& machine, instant now, actions& out) { machine.received(which.serial(), bytes, now, out); });
}

void transport::on_broken(connection& which, error_code const&) {
  executor_probe::mark const here(core_->threads().probe());
  std::uint32_t const serial = which.serial();
  forget(serial);
  core_->machine_steps().take([&](client_machine& machine, instant now, actions& out) {
    machine.broken(serial, errc::connection_lost, now, out);
  });
}

void transport::on_lane_received(std::uint32_t serial, std::string_view bytes) {
  executor_probe::mark const here(core_->threads().probe());
  core_->machine_steps().take(
      [&](client_machine& machine, instant now, actions& out) { machine.received(serial, bytes, now, out); });
}

void transport::on_lane_broken(std::uint32_t serial) {
  executor_probe::mark const here(core_->threads().probe());
  core_->lane_closed(serial);
  core_->machine_steps().take([&](client_machine& machine, instant now, actions& out) {
    machine.broken(serial, errc::connection_lost, now, out);
  });
}

}  // namespace latchkey::detail
