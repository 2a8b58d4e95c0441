#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/owner.hpp>
#include <latchkey/timespan.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>

namespace latchkey {

/// How to acquire a lease. All members may be left out.
///
/// Times may be given as any `std::chrono` duration (`.wait = 1.5s, .lease = 800us`) and are rounded up to a
/// millisecond; see `timespan`.
///
/// In a coroutine build the options before the `co_await` expression: GCC 12 copies braced arguments
/// inside it wrongly for types that are not trivially copyable.
struct acquire_options {
  /// How long the whole call may take. Zero or less: one attempt. The default waits for ever.
  timespan wait = milliseconds::max();
  /// A fixed lease, more than zero and at most ten years. Left out: the watchdog renews until release.
  std::optional<timespan> lease = std::nullopt;
  /// Who is to hold it. Left out: a new owner, so that nobody else shares the hold.
  std::optional<latchkey::owner> owner = std::nullopt;
  /// A bound: the first lease and every renewal are cut so that the hold ends, here and on the server, this long after
  /// the request that was granted left. Then it is lost (`max_hold_reached`). Only without `lease`; `extend` lifts it.
  std::optional<timespan> max_hold = std::nullopt;
  /// Added to every lease of the hold on the server and not trusted here (Chubby's lock-delay): when a holder has lost
  /// the lock by its deadline, others stay out for so long, so that its late writes have time to arrive. A release and
  /// a `force_unlock` end it at once, as does a later hold of the same owner. At most ten years; only for locks of one
  /// name.
  timespan lock_delay{};
  /// For work that may hang: the watchdog renews only while `lease::progress` was called within this time, or the grant
  /// is no longer ago. When it was not, an event (`warning`) says so with the next renewal that would be due, a third
  /// of `config::lock_watchdog_timeout` later at most; the hold is then renewed no longer, and lost with its lease.
  /// Only without `lease`; `lease::extend` ends it.
  std::optional<timespan> progress_within = std::nullopt;
  /// Comes back in every event about this call and its hold (`event::context`): a number of a job, a pointer.
  std::uint64_t context = 0;
};

static_assert(std::is_trivially_copyable_v<acquire_options>);

/// What a release found.
enum class release_result {
  /// The hold was there and is gone now.
  released,
  /// This hold is gone; the owner has others on the same lock.
  still_held,
  /// The hold had ended before: its lease ran out, or somebody removed it.
  expired,
  /// Nobody can tell: an answer was lost and the lease ended meanwhile, or `lease::release`, which does not throw for
  /// it, could not reach the server or log in; it goes on in the background, and at the latest the lease ends the hold.
  unknown,
};

}  // namespace latchkey
