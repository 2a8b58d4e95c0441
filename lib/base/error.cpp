#include <base/server_words.hpp>
#include <boost/system/errc.hpp>
#include <boost/system/error_category.hpp>
#include <latchkey/error.hpp>
#include <utility>

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

}  // namespace latchkey
