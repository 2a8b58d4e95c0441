#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/fwd.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace latchkey {

/// A lock on one name that any number of readers or one writer may hold, shared by every process that uses the same
/// Redis.
///
/// A handle is cheap to copy and holds no lock. Its two sides are `distributed_lock`s with all that these can: waits,
/// leases, watchdog, `with_lock`. Both sides are reentrant. Two handles of one name and client are one lock.
///
/// \par Guarantee
/// While a hold of the write side is trusted (`lease::held`), no other owner holds either side; while holds of the
/// read side are trusted, no other owner holds the write side. Otherwise as for `distributed_lock`.
///
/// \par From one side to the other
/// Who writes may take the read side at once, and keeps it, renewed, when he gives up the write side: that is a
/// downgrade. Who only reads and asks for the write side would wait for himself: he gets `would_deadlock` at once,
/// with or without other readers, also from `try_lock`, and nothing is sent. Give up the read side first.
///
/// \par Who goes first
/// In one client callers of both sides stand in one queue, in the order of their arrival: a stream of readers does not
/// keep a waiting writer out, and readers behind one writer go in together. So `try_lock` of the read side says false
/// while a writer of this client waits, also while others read. An owner who holds a side never queues to take it
/// again. Between clients, and between them and Redisson's, nobody stands in a line: whoever tries first when the
/// lock is open gets it, and readers that never leave a gap keep writers of other processes out.
///
/// \par Sides
/// `is_locked`: of the read side whether anybody reads, of the write side whether anybody writes. `is_held_by` and
/// `hold_count` count holds of that side only. `remaining_time_to_live` is that of the whole lock. `force_unlock` of
/// the read side removes all readers, and does nothing while somebody writes; of the write side it removes the writer
/// with his read holds, and does nothing otherwise. `acquire` without limit on a thread that itself keeps it
/// out as `owner::this_thread()` is `would_deadlock`, as for every lock: with either side the write side; with the
/// write side, or behind a waiting writer of this client, the read side.
///
/// \par Beside Redisson
/// A Redisson process that renews a read hold sets the lock to its own watchdog time, even if a read hold of ours has a
/// longer fixed lease. If it then dies without a release, the lock ends with that time. Renewed holds are not
/// concerned.
///
/// \par Threads
/// Distinct and shared objects: safe.
///
/// \par Source
/// Redisson's `RReadWriteLock`: a hash `name` with the field `mode`, a count in `uuid:owner` for every reader and in
/// `uuid:owner:write` for the writer, and a key `{name}:uuid:owner:rwlock_timeout:i` for every read hold.
class LATCHKEY_EXPORT read_write_lock {
 public:
  /// The side that many may hold. No I/O.
  distributed_lock read_lock() const;
  /// The side that one may hold. No I/O.
  distributed_lock write_lock() const;
  /// Both sides for `std::shared_lock`, `std::unique_lock` and `std::scoped_lock`: a *SharedTimedLockable* whose
  /// unlocking reports a failure as an event instead of throwing.
  std_shared_mutex as_shared_mutex() const;

  /// The name as given to the client. No I/O.
  std::string const& name() const noexcept;

  /// The same lock: one name of one client.
  friend LATCHKEY_EXPORT bool operator==(read_write_lock const& a, read_write_lock const& b) noexcept;

 private:
  friend class client;
  using key_ptr = std::shared_ptr<detail::lock_key const>;
  explicit read_write_lock(key_ptr reads, key_ptr writes) noexcept;

  key_ptr reads_;
  key_ptr writes_;
};

/// A `read_write_lock` for `std::shared_lock` (the side that many may hold) and `std::unique_lock` (the side that one
/// may hold). The calling thread owns.
///
/// Each side behaves as a `std_mutex`: a failed unlock is an event (`event_type::unlock_failed`), and a timed try is
/// also false, and an event, where the server did not answer.
///
/// Unlike with `std::shared_timed_mutex` a thread may take either side again, and the shared side while it holds the
/// exclusive one; who holds the shared side only and asks for the exclusive one gets `errc::would_deadlock`.
class LATCHKEY_EXPORT std_shared_mutex {
 public:
  /// Both sides of this lock. No I/O.
  explicit std_shared_mutex(read_write_lock const& lock);

  /// As `std_mutex::lock`, of the exclusive side.
  void lock() const { writes_.lock(); }
  /// As `std_mutex::try_lock`, of the exclusive side.
  [[nodiscard]] bool try_lock() const { return writes_.try_lock(); }
  /// As `std_mutex::try_lock_for`, of the exclusive side.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> wait) const {
    return writes_.try_lock_for(wait);
  }
  /// As `std_mutex::try_lock_until`, of the exclusive side.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) const {
    return writes_.try_lock_until(when);
  }
  /// As `std_mutex::unlock`, of the exclusive side.
  void unlock() const noexcept { writes_.unlock(); }

  /// As `std_mutex::lock`, of the shared side.
  void lock_shared() const { reads_.lock(); }
  /// As `std_mutex::try_lock`, of the shared side.
  [[nodiscard]] bool try_lock_shared() const { return reads_.try_lock(); }
  /// As `std_mutex::try_lock_for`, of the shared side.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) const {
    return reads_.try_lock_for(wait);
  }
  /// As `std_mutex::try_lock_until`, of the shared side.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> when) const {
    return reads_.try_lock_until(when);
  }
  /// As `std_mutex::unlock`, of the shared side.
  void unlock_shared() const noexcept { reads_.unlock(); }

 private:
  std_mutex reads_;
  std_mutex writes_;
};

}  // namespace latchkey
