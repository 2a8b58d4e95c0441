#include <api/check_config.hpp>
#include <latchkey/error.hpp>

#include <string>
#include <string_view>

namespace latchkey::detail {

namespace {

void require(bool good, char const* what) {
  if (!good) throw lock_error(errc::bad_argument, std::string("config: ") + what);
}

constexpr milliseconds longest = std::chrono::hours(24 * 365);

bool within(milliseconds value, milliseconds least) { return value >= least && value <= longest; }

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool const dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos)
      return false;
  }
  return true;
}

}  // namespace

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
  require(within(given.local_handoff.max_time, zero), "local_handoff.max_time must be zero to a year");
  require(given.busy_poll >= zero && given.busy_poll <= std::chrono::seconds(1), "busy_poll must be zero to a second");
  require(within(given.close_timeout, zero), "close_timeout must be zero to a year");
  require(given.tls.private_key_file.empty() || !given.tls.certificate_file.empty(),
          "tls.private_key_file needs a tls.certificate_file");
  require(given.sentinel_tls.private_key_file.empty() || !given.sentinel_tls.certificate_file.empty(),
          "sentinel_tls.private_key_file needs a sentinel_tls.certificate_file");
}

}  // namespace latchkey::detail
