#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/export.hpp>

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <string>

namespace latchkey {

using boost::system::error_code;

/// What can go wrong, by name. Still busy is not among them: `try_lock` and `acquire` say that by value.
enum class errc {
  /// The owner has no hold on this lock in this client that this call may end: none at all, or only such as leases
  /// show, which their leases end. Nothing was sent.
  not_owner = 1,
  /// The hold ended before it was released: its lease ran out, or somebody removed it on the server.
  lease_lost,
  /// The client is closed, or this process is the child of a `fork()`.
  closed,
  /// No answer in time, or only the answer that the server takes no requests at the moment (its words are in the text).
  /// A request that was on its way is taken back in the background; a release goes on there.
  timeout,
  /// `with_lock` only: the wait ended, the body did not run.
  busy,
  /// The connection went away and could not be replaced in time; see `may_still_be_held`.
  connection_lost,
  /// No connection could be made until the wait or the attempts were over; the text has the server's address and the
  /// system's words. Nothing is left behind on the server.
  connect_failed,
  /// The server refused the user, the password or the database.
  auth_failed,
  /// The server answered with an error; its words are in `lock_error::server_text` and in the event.
  server_error,
  /// The key holds something that is not a lock.
  wrong_type,
  /// The server does not take writes (a replica).
  read_only,
  /// Too few replicas confirmed the lock.
  not_synced,
  /// The URI cannot be read, or names something that this version does not support.
  bad_uri,
  /// An argument is out of its range. Nothing was sent.
  bad_argument,
  /// The peer does not speak the Redis protocol, or its answer is beyond our limits.
  protocol_error,
  /// A lock that is not reentrant was asked for by its owner.
  already_held,
  /// The call would wait for something that only its own thread or owner can bring about.
  would_deadlock,
  /// The names derived from this lock name lie in different slots of the cluster.
  cross_slot,
  /// This client and the server do not agree about TLS, and trying again would not change that: one of them refused the
  /// other's certificate, or they have no version or cipher in common; the text has the server's address and OpenSSL's
  /// words. Nothing is left behind on the server.
  tls_failed,
  /// By `redis-sentinel://`: no sentinel knows a master of this name, in its own words. By `redis-cluster://`: no node
  /// has slots, or the slot of the name had no node until the call ended, or, with `config::check_slots_coverage`, some
  /// have none. Nothing is left behind on any server.
  no_master,
};

/// The category of `errc`.
LATCHKEY_EXPORT boost::system::error_category const& error_category() noexcept;

/// Makes `errc` usable where an `error_code` is wanted.
inline error_code make_error_code(errc value) noexcept { return {static_cast<int>(value), error_category()}; }

/// May the same call succeed later without anybody changing a setting?
/// True for `timeout`, `connection_lost`, `connect_failed`, `read_only`, `not_synced` and `no_master`.
/// For a `server_error` ask `lock_error::transient()`, which looks at the server's words.
LATCHKEY_EXPORT bool is_transient(error_code const& error) noexcept;

/// May the server still show a hold of the caller after this error?
/// True where a request may have run unseen: `timeout`, `connection_lost`, `closed`, `not_synced`, and cancellation
/// (`asio::error::operation_aborted`). The client takes such a hold back in the background as soon as it
/// reaches the server (not after `closed`); until then, and at most for one lease, others may find the lock busy.
/// A call whose request left and was never answered ends with one of these, whatever ended it: a second copy that was
/// refused, or a connection that could not be made again; its text says which. All other errors of a call
/// that takes something leave nothing behind. After a failed release see `distributed_lock::unlock`. What members of a
/// multi lock had granted when another one failed is given back in the background in any case. A permit of a
/// `semaphore` has no lease: if the server cannot be reached for 20 s it forgets which request took it, and the permit
/// may be gone until somebody adds one (`event_type::permit_lost`).
LATCHKEY_EXPORT bool may_still_be_held(error_code const& error) noexcept;

/// What the blocking calls throw: an `error_code` and, where there is one, the server's own text.
class LATCHKEY_EXPORT lock_error : public boost::system::system_error {
 public:
  /// `server_text` follows the words of the code.
  explicit lock_error(error_code const& code, std::string server_text = {});
  ~lock_error() override;

  /// The server's words; empty if it said nothing. Never contains a password.
  std::string const& server_text() const noexcept { return server_text_; }

  /// As `is_transient`, and also true for a server that is loading, busy, out of memory or out of disk.
  bool transient() const noexcept;

 private:
  std::string server_text_;
};

}  // namespace latchkey

template <>
struct boost::system::is_error_code_enum<latchkey::errc> : std::true_type {};
