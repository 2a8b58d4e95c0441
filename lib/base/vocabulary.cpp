#include <base/server_words.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/error.hpp>
#include <latchkey/event.hpp>
#include <latchkey/owner.hpp>

#include <boost/system/errc.hpp>
#include <boost/system/error_category.hpp>

#include <atomic>
#include <utility>

// Everything else of the library that may include Asio is compiled with the same settings as this file.
char const latchkey::detail::LATCHKEY_DETAIL_BOOST_GUARD = 0;

namespace latchkey {

namespace {

char const* text_of(errc value) noexcept {
  switch (value) {
    case errc::not_owner: return "the owner has no hold on this lock";
    case errc::lease_lost: return "the hold had ended before it was released";
    case errc::closed: return "the client is closed";
    case errc::timeout: return "no answer in time";
    case errc::busy: return "the lock was still busy when the wait ended";
    case errc::connection_lost: return "the connection was lost";
    case errc::connect_failed: return "no connection could be made";
    case errc::auth_failed: return "the server refused the user, the password or the database";
    case errc::server_error: return "the server answered with an error";
    case errc::wrong_type: return "the key holds something that is not a lock";
    case errc::read_only: return "the server does not take writes";
    case errc::not_synced: return "too few replicas confirmed the lock";
    case errc::bad_uri: return "the URI cannot be used";
    case errc::bad_argument: return "an argument is out of its range";
    case errc::protocol_error: return "the peer does not speak the Redis protocol within our limits";
    case errc::already_held: return "the owner holds this lock already and it is not reentrant";
    case errc::would_deadlock: return "the call would wait for its own thread or owner";
    case errc::cross_slot: return "the names derived from this lock name lie in different slots of the cluster";
    case errc::tls_failed: return "the client and the server do not agree about TLS";
    case errc::no_master: return "no master is known";
  }
  return "unknown error";
}

class category final : public boost::system::error_category {
 public:
  // Two shared objects of a program may each have a copy of this library: by the number their codes are the same.
  category() : error_category(0x6c61746368'6b6579) {}
  char const* name() const noexcept override { return "latchkey"; }
  std::string message(int value) const override { return text_of(static_cast<errc>(value)); }
  char const* message(int value, char*, std::size_t) const noexcept override {
    return text_of(static_cast<errc>(value));
  }
};

bool ours(error_code const& error) noexcept { return error.category() == error_category(); }

boost::system::system_error with_text(error_code const& code, std::string const& text) {
  return text.empty() ? boost::system::system_error(code) : boost::system::system_error(code, text);
}

}  // namespace

boost::system::error_category const& error_category() noexcept {
  // Never destroyed: static objects of the program may still compare codes when they go.
  static category const& the_one = *new category;
  return the_one;
}

bool is_transient(error_code const& error) noexcept {
  if (!ours(error)) return false;
  switch (static_cast<errc>(error.value())) {
    case errc::timeout:
    case errc::connection_lost:
    case errc::connect_failed:
    case errc::read_only:
    case errc::not_synced:
    case errc::no_master: return true;
    default: return false;
  }
}

bool may_still_be_held(error_code const& error) noexcept {
  // Asio's operation_aborted, without naming Asio on this floor.
  if (!ours(error)) return error == boost::system::errc::operation_canceled;
  switch (static_cast<errc>(error.value())) {
    case errc::timeout:
    case errc::connection_lost:
    case errc::closed:
    case errc::not_synced: return true;
    default: return false;
  }
}

lock_error::lock_error(error_code const& code, std::string server_text)
    : boost::system::system_error(with_text(code, server_text)), server_text_(std::move(server_text)) {}

lock_error::~lock_error() = default;

bool lock_error::transient() const noexcept {
  return is_transient(code()) || (code() == errc::server_error && detail::passes_by_itself(server_text_));
}

std::string_view to_string(event_type type) noexcept {
  switch (type) {
    case event_type::attempt: return "attempt";
    case event_type::waiting: return "waiting";
    case event_type::granted: return "granted";
    case event_type::handed_off: return "handed_off";
    case event_type::gave_up: return "gave_up";
    case event_type::released: return "released";
    case event_type::at_risk: return "at_risk";
    case event_type::lost: return "lost";
    case event_type::max_hold_reached: return "max_hold_reached";
    case event_type::abandoned: return "abandoned";
    case event_type::connected: return "connected";
    case event_type::disconnected: return "disconnected";
    case event_type::connect_failed: return "connect_failed";
    case event_type::kill_refused: return "kill_refused";
    case event_type::lane_unchecked: return "lane_unchecked";
    case event_type::subscribe_refused: return "subscribe_refused";
    case event_type::publish_refused: return "publish_refused";
    case event_type::no_time_to_live: return "no_time_to_live";
    case event_type::unlock_failed: return "unlock_failed";
    case event_type::left_to_lease: return "left_to_lease";
    case event_type::holder_thread_ended: return "holder_thread_ended";
    case event_type::permit_lost: return "permit_lost";
    case event_type::callback_failed: return "callback_failed";
    case event_type::tls_reloaded: return "tls_reloaded";
    case event_type::quarantined: return "quarantined";
    case event_type::unsynced: return "unsynced";
    case event_type::topology_changed: return "topology_changed";
    case event_type::unfenced: return "unfenced";
    case event_type::deposed_answer: return "deposed_answer";
    case event_type::redirected: return "redirected";
    case event_type::slot_uncovered: return "slot_uncovered";
    case event_type::warning: return "warning";
  }
  return "unknown";
}

namespace {

// From 1: zero stands for nobody.
std::atomic<std::uint64_t> next_owner{1};

}  // namespace

owner owner::make() noexcept { return owner(next_owner.fetch_add(1, std::memory_order_relaxed)); }

owner owner::this_thread() noexcept {
  thread_local owner const mine = make();
  return mine;
}

std::string to_string(owner who) { return std::to_string(detail::owner_access::number(who)); }

}  // namespace latchkey
