#include <api/async_call.hpp>
#include <api/single_lock.hpp>
#include <joint/join.hpp>
#include <latchkey/client.hpp>
#include <latchkey/config.hpp>
#include <latchkey/error.hpp>
#include <wire/kind.hpp>
#include <wire/kinds.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace latchkey::detail {

namespace {

void require(bool good, char const* what) {
  if (!good) throw lock_error(errc::bad_argument, std::string("config: ") + what);
}

constexpr milliseconds longest_setting = std::chrono::hours(24 * 365);

bool within(milliseconds value, milliseconds least) { return value >= least && value <= longest_setting; }

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool const dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos)
      return false;
  }
  return true;
}

// \throws lock_error bad_argument: a setting is out of range; the text names it.
void check_config(config const& given) {
  constexpr milliseconds zero{0};
  constexpr milliseconds one{1};
  require(within(given.lock_watchdog_timeout, milliseconds(10)), "lock_watchdog_timeout must be 10 ms to a year");
  require(given.lock_watchdog_batch_size >= 1 && given.lock_watchdog_batch_size <= 1000,
          "lock_watchdog_batch_size must be 1 to 1000");
  require(within(given.replicas_sync_timeout, zero), "replicas_sync_timeout must be zero to a year");
  require(given.min_synced_replicas >= -1 && given.min_synced_replicas <= 1000,
          "min_synced_replicas must be -1 to 1000");
  require(within(given.failover_quarantine, zero), "failover_quarantine must be zero to a year");
  require(given.clock_margin >= zero && given.clock_margin <= given.lock_watchdog_timeout / 3,
          "clock_margin must be zero to a third of lock_watchdog_timeout");
  require(within(given.fair_lock_wait_timeout, one), "fair_lock_wait_timeout must be 1 ms to a year");
  require(within(given.connect_timeout, one), "connect_timeout must be 1 ms to a year");
  require(within(given.timeout, one), "timeout must be 1 ms to a year");
  require(given.retry_attempts >= 0 && given.retry_attempts <= 1'000'000, "retry_attempts must be 0 to a million");
  require(within(given.retry_delay, one), "retry_delay must be 1 ms to a year");
  require(within(given.scan_interval, zero), "scan_interval must be zero to a year");
  require(within(given.ping_interval, zero), "ping_interval must be zero to a year");
  require(within(given.idle_connection_timeout, zero), "idle_connection_timeout must be zero to a year");
  for (char const c : given.client_name)
    require(c > ' ' && c <= '~', "client_name must consist of printable ASCII characters");
  require(given.client_id.empty() || is_uuid(given.client_id), "client_id must be a UUID in lower case");
  require(given.database >= 0, "database must not be negative");
  require(given.local_handoff.max_streak >= 0, "local_handoff.max_streak must not be negative");
  require(given.local_handoff.warm_up >= 0, "local_handoff.warm_up must not be negative");
  require(within(given.local_handoff.max_time, zero), "local_handoff.max_time must be zero to a year");
  require(given.busy_poll >= zero && given.busy_poll <= std::chrono::seconds(1), "busy_poll must be zero to a second");
  require(within(given.close_timeout, zero), "close_timeout must be zero to a year");
  require(given.tls.private_key_file.empty() || !given.tls.certificate_file.empty(),
          "tls.private_key_file needs a tls.certificate_file");
  require(given.sentinel_tls.private_key_file.empty() || !given.sentinel_tls.certificate_file.empty(),
          "sentinel_tls.private_key_file needs a sentinel_tls.certificate_file");
}

}  // namespace

}  // namespace latchkey::detail

namespace latchkey {

namespace {

constexpr std::size_t longest_name = 64 * 1024;

std::shared_ptr<detail::core> make_core(std::optional<asio::any_io_executor> executor, std::string_view uri,
                                        config settings) {
  detail::check_config(settings);
  return detail::core::make(std::move(executor), uri, std::move(settings));
}

detail::core& checked(std::shared_ptr<detail::core> const& core) {
  if (!core) throw lock_error(errc::closed, "the client was moved from");
  return *core;
}

template <class Key = detail::single_lock, class... More>
std::shared_ptr<detail::lock_key const> make_key(std::shared_ptr<detail::core> const& core, std::string name,
                                                 detail::kind const& which, More... more) {
  checked(core);
  if (name.empty()) throw lock_error(errc::bad_argument, "a lock's name must not be empty");
  if (name.size() > longest_name) throw lock_error(errc::bad_argument, "a lock's name must not exceed 64 KiB");
  if (core->server().where.how == detail::target::scheme::cluster && !which.in_one_slot(name))
    throw lock_error(errc::cross_slot, name);
  return std::make_shared<Key const>(core, std::move(name), which, more...);
}

}  // namespace

client::client(std::string_view uri, config settings) : core_(make_core(std::nullopt, uri, std::move(settings))) {}

client::client(asio::any_io_executor executor, std::string_view uri, config settings) {
  if (!executor) throw lock_error(errc::bad_argument, "the executor is empty");
  core_ = make_core(std::move(executor), uri, std::move(settings));
}

client::client(client&&) noexcept = default;

client& client::operator=(client&& other) noexcept {
  if (this != &other) {
    if (core_) core_->close();
    core_ = std::move(other.core_);
  }
  return *this;
}

client::~client() {
  if (core_) core_->close();
}

distributed_lock client::get_lock(std::string name) const {
  return make_lock(std::move(name), detail::reentrant_kind());
}

distributed_lock client::get_fair_lock(std::string name) const {
  return make_lock(std::move(name), detail::fair_kind());
}

// [getter]
distributed_lock client::get_non_reentrant_lock(std::string name) const {
  return make_lock(std::move(name), detail::non_reentrant_kind());
}
// [/getter]

distributed_lock client::get_spin_lock(std::string name) const {
  return make_lock(std::move(name), detail::spin_kind());
}

distributed_lock client::get_fenced_lock(std::string name) const {
  bool const seeded = checked(core_).settings().seed_fencing_token;
  return make_lock(std::move(name), detail::fenced_kind(seeded));
}

distributed_lock client::get_plain_lock(std::string name) const {
  return make_lock(std::move(name), detail::plain_kind());
}

distributed_lock client::make_lock(std::string name, detail::kind const& which) const {
  return distributed_lock(make_key(core_, std::move(name), which));
}

read_write_lock client::get_read_write_lock(std::string name) const {
  auto reads = make_key(core_, name, detail::read_write_kind());
  return read_write_lock(std::move(reads),
                         make_key(core_, std::move(name), detail::read_write_kind(), std::uint8_t{1}));
}

semaphore client::get_semaphore(std::string name) const {
  return semaphore(make_key(core_, std::move(name), detail::semaphore_kind()));
}

semaphore client::get_semaphore(std::string name, int permits) const {
  if (permits < 0) throw lock_error(errc::bad_argument, "the number of permits must not be negative");
  return semaphore(make_key<detail::counted_semaphore>(core_, std::move(name), detail::semaphore_kind(), permits));
}

permit_semaphore client::get_permit_semaphore(std::string name) const {
  return permit_semaphore(make_key(core_, std::move(name), detail::permit_semaphore_kind()));
}

count_down_latch client::get_count_down_latch(std::string name) const {
  return count_down_latch(make_key(core_, std::move(name), detail::count_down_latch_kind()));
}

distributed_lock client::join(std::vector<distributed_lock> members, bool majority) const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  std::vector<std::shared_ptr<detail::lock_key const>> keys;
  for (auto& lock : members) keys.push_back(std::move(lock.key_));
  return distributed_lock(detail::join(core_, std::move(keys), majority));
}

distributed_lock client::get_multi_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), false);
}

distributed_lock client::get_red_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), true);
}

owner client::new_owner() const { return owner::make(); }

std::string const& client::id() const { return checked(core_).id(); }

stats client::snapshot() const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  return core_->snapshot();
}

void client::reload_tls() const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  auto const& server = core_->server();
  if (!server.tls) return;
  // Both or none.
  auto read = server.tls->read_files();
  if (server.sentinel_tls) server.sentinel_tls->use(server.sentinel_tls->read_files());
  server.tls->use(std::move(read));
  core_->machine_steps().take(
      [](detail::client_machine& machine, detail::instant now, detail::actions& out) { machine.hurry(now, out); });
  core_->report({.type = event_type::tls_reloaded, .text = "the certificates were read again, for new connections"});
}

client::executor_type client::get_executor() const { return checked(core_).threads().handler_executor(); }

void client::close() {
  if (core_) core_->close();
}

void client::start_close(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done) {
  if (core->forked()) return detail::complete_later(asio::system_executor(), std::move(done), errc::closed);
  // Both run until it is told.
  auto const executor = core->threads().tracked_executor();
  auto const where =
      asio::prefer(asio::get_associated_executor(done, executor), asio::execution::outstanding_work.tracked);
  // Shared, since a std::function wants to copy what it holds.
  auto const shared = std::make_shared<detail::handler<void(error_code)>>(std::move(done));
  core->on_closed([executor, where, shared, weak = std::weak_ptr(core)] {
    auto handler = std::move(*shared);
    if (auto const still = weak.lock()) return detail::complete_later(still, std::move(handler), error_code());
    detail::complete_later(executor, std::move(handler), error_code());
  });
  core->begin_close();
}

namespace {

// A call needs a key, of any kind; a connect is of no name.
std::shared_ptr<detail::lock_key const> key_of(std::shared_ptr<detail::core> const& core) {
  return std::make_shared<detail::single_lock const>(core, "", detail::reentrant_kind());
}

void connect_within(std::shared_ptr<detail::core> const& core, std::optional<milliseconds> wait) {
  if (!core) throw lock_error(errc::closed, "the client was moved from");
  run_call(*key_of(core), detail::fill_connect, wait);
}

}  // namespace

void client::connect() const { connect_within(core_, std::nullopt); }
void client::connect(timespan wait) const { connect_within(core_, wait); }

void client::start_connect(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done) {
  auto const only_error = [](detail::operation const& ended) { return std::tuple(ended.error); };
  start_call(key_of(core), std::move(done), only_error, detail::fill_connect, std::nullopt);
}

}  // namespace latchkey
