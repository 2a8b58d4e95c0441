#include <engine/sockets.hpp>
#include <engine/transport.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace latchkey::detail {

lane_check::lane_check(io_strand const& strand, socket_listener& whom, std::shared_ptr<direct_lane> lane)
    : listener_(&whom), lane_(std::move(lane)), socket_(strand) {}

void lane_check::start(std::string_view question) {
  if (!adopt(socket_, lane_->duplicate())) return broken();
  // A few bytes on an idle socket: less than all of them means that it is not well.
  if (lane_->write_now(question.data(), question.size()) != static_cast<long>(question.size())) return broken();
  wait();
}

void lane_check::wait() {
  socket_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](error_code const& cancelled) noexcept {
                       if (!cancelled && self->listener_) self->readable();
                     });
}

void lane_check::readable() {
  long const n = lane_->read_now(buffer_.data(), buffer_.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return wait();
  if (n <= 0) return broken();
  std::string_view const bytes(buffer_.data(), static_cast<std::size_t>(n));
  // The answer is one line; with its end the machine may lend the lane at once.
  bool const whole = bytes.ends_with('\n');
  socket_listener* const whom = listener_;
  if (whole) close();
  whom->on_received(lane_->serial(), bytes);
  // By TLS the rest may have been received already, which makes no socket readable.
  if (!whole && listener_) readable();
}

void lane_check::broken() {
  socket_listener* const whom = listener_;
  close();
  whom->on_broken(lane_->serial());
}

void lane_check::close() {
  listener_ = nullptr;
  error_code ignored;
  socket_.close(ignored);
  lane_->make_blocking();
}

namespace {

constexpr std::size_t most_names = 64;  // of servers and sentinels, remembered

}  // namespace

transport::transport(std::shared_ptr<core> whose)
    : core_(std::move(whose)), strand_(core_->threads().executor()), timer_(strand_), close_limit_(strand_) {
  if (!adopt(timer_, core_->machine_steps().timer().duplicate()))
    throw lock_error(errc::connect_failed, "no descriptor is left for the timer");
}

transport::~transport() {
  for (auto const& connection : connections_) connection->detach();
  for (auto const& check : checks_) check->detach();
  checks_.clear();
  if (!finished_) core_->executor_gone();
}

void transport::start() {
  watch_timer();
  if (core_->closing()) limit_close();
}

void transport::watch_timer() {
  timer_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](error_code const& cancelled) noexcept {
                      if (cancelled || self->finished_) return;
                      self->core_->machine_steps().timer().fired();
                      self->tell([](client_machine& machine, instant now, actions& out) { machine.time(now, out); });
                      self->watch_timer();
                    });
}

void transport::turn() {
  if (finished_) return;
  executor_probe::mark const here(core_->threads().probe());
  io_.clear();
  core_->machine_steps().take(
      [this](client_machine& machine, instant now, actions& out) {
        core_->machine_steps().turn_begins();
        machine.turn(now, io_, out);
        for (std::uint32_t const serial : io_.lend) lend(serial);
      },
      [this] { perform_io(); });
}

void transport::perform_io() {
  for (std::uint32_t const serial : io_.close) discard(serial);
  for (std::uint32_t const serial : io_.abort) abort(serial);
  for (auto const& opening : io_.open) open(opening);
  for (auto& writing : io_.write) write(writing);
}

void transport::open(io_actions::opening const& opening) {
  connection::limits const most{core_->settings().connect_timeout, core_->settings().timeout};
  auto made = std::make_shared<connection>(strand_, *this, names_of(opening.to), opening.serial, most,
                                           core_->server().tls_for(opening.as));
  connections_.push_back(made);
  if (opening.to_peer) {
    connection const* const leader = find(opening.leader);
    return leader ? made->open(leader->peer(), leader->host()) : forget(opening.serial);
  }
  if (opening.to.host.empty()) return made->open(core_->server().where);
  target where;
  where.host = opening.to.host;
  where.port = opening.to.port;
  made->open(where);
}

std::shared_ptr<name_lookup> transport::names_of(node_address const& at) {
  auto const known = std::find_if(names_.begin(), names_.end(), [&](auto const& entry) { return entry.first == at; });
  if (known != names_.end()) return known->second;
  // Whoever still waits for an answer keeps his.
  if (names_.size() >= most_names) names_.erase(names_.begin());
  return names_.emplace_back(at, std::make_shared<name_lookup>()).second;
}

void transport::write(io_actions::writing& writing) {
  if (connection* to = find(writing.serial)) return to->write(std::move(writing.bytes));
  auto lane = core_->machine_steps().look([&](client_machine&) { return core_->lanes().lane(writing.serial); });
  if (!lane) return;
  end_check(writing.serial);
  auto const made = std::make_shared<lane_check>(strand_, *this, std::move(lane));
  checks_.push_back(made);
  made->start(writing.bytes);
}

void transport::discard(std::uint32_t serial) {
  if (find(serial) != nullptr) return forget(serial);
  end_check(serial);
  core_->lane_closed(serial);
}

// And those that have ended by themselves.
void transport::end_check(std::uint32_t serial) {
  std::erase_if(checks_, [serial](auto const& check) {
    if (check->serial() == serial) check->close();
    return check->over();
  });
}

void transport::abort(std::uint32_t serial) {
  if (connection* const connection = find(serial)) connection->abort();
  core_->lane_closed(serial, true);
  discard(serial);
}

void transport::lend(std::uint32_t serial) {
  connection* const connection = find(serial);
  if (connection == nullptr) return;
  auto left = connection->release();
  forget(serial);
  if (left.fd < 0) return;  // the first borrower finds no lane and says so
  auto const& settings = core_->settings();
  core_->lanes().opened(
      std::make_shared<direct_lane>(serial, left.fd, std::move(left.tls), settings.timeout, settings.busy_poll));
}

connection* transport::find(std::uint32_t serial) {
  auto const same = [serial](auto const& connection) { return connection->serial() == serial; };
  auto const found = std::find_if(connections_.begin(), connections_.end(), same);
  return found == connections_.end() ? nullptr : found->get();
}

void transport::forget(std::uint32_t serial) {
  std::erase_if(connections_, [serial](auto const& connection) {
    if (connection->serial() != serial) return false;
    connection->close();
    return true;
  });
}

void transport::limit_close() {
  if (finished_) return;
  // A little earlier than whoever waits for it gives up.
  milliseconds const most = core_->settings().close_timeout;
  close_limit_.expires_after(most - std::min(most / 10, milliseconds(100)));
  close_limit_.async_wait([self = shared_from_this()](error_code const& cancelled) noexcept {
    if (!cancelled) self->finish();
  });
}

void transport::finish() {
  if (finished_) return;
  finished_ = true;
  for (auto const& connection : connections_) connection->end();
  connections_.clear();
  for (auto const& check : checks_) check->close();
  checks_.clear();
  error_code ignored;
  timer_.close(ignored);
  close_limit_.cancel();
  core_->finished();
}

// What sockets report goes to the machine as it is.

void transport::on_opened(std::uint32_t serial) {
  tell([&](client_machine& machine, instant now, actions& out) { machine.opened(serial, now, out); });
}

void transport::on_open_failed(std::uint32_t serial, error_code const& why, std::string const& text) {
  forget(serial);
  tell([&](client_machine& machine, instant now, actions& out) { machine.open_failed(serial, why, text, now, out); });
}

void transport::on_received(std::uint32_t serial, std::string_view bytes) {
  tell([&](client_machine& machine, instant now, actions& out) { machine.received(serial, bytes, now, out); });
}

void transport::on_broken(std::uint32_t serial) {
  find(serial) ? forget(serial) : core_->lane_closed(serial);
  tell([&](client_machine& machine, instant now, actions& out) {
    machine.broken(serial, errc::connection_lost, now, out);
  });
}

}  // namespace latchkey::detail
