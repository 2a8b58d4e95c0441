#pragma once

#include <torture/history.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace latchkey::torture {

// Decides what the histories of a run show. All times are of one clock.
//
// A section is *trusted* from the moment at which its grant was known until the last moment of which its holder knew
// that he still held: he read the clock, then asked held(), and held() said true. What he did after that moment he did
// on his own account, as every user of a lease does.
//
// violation: two trusted sections of one lock that exclude each other overlap, more permits are trusted than there
//   are, a semaphore ends with more permits than it began with, a token is not above those of all sections that had
//   been granted when it was asked for, a latch is passed before its count was reached, or a worker ended in a way that
//   nobody made it end. Excused: a stranger removed the holder of the earlier section, after that section was asked for
//   and before the later one was granted, and the later one was granted within the lease of the earlier one after that:
//   the earlier holder need not have heard yet.
// lost_reported: the holder was told, by held(), by lost(), or by a release that said expired.
// lost_unreported: held() was false and lost() was silent for seconds; or the holder trusted for longer than his lease
//   after the grant (if nothing renewed it), after the removal by a stranger, or after the beginning of an outage of
//   the server that was not yet over; or a release said released although another had been granted in the meantime, and
//   trusted it. Excused is the last of these where a connection was lost during the release: a second copy of it finds
//   the lock free, and cannot know (docs/safety.md, section 6).
// hung: a call that took longer than its limit, not counting the times at which its process or the machine stood
//   still; a call without an end; a process that did not end; in the last round, when all is healed, a lock that could
//   not be had.
// late: an acquire that ended more than a second after its wait, and any other call that took a second longer than its
//   limit; the same times are left out. What is hung is late, too.
// storm: a client that connected to a sick server more often than some hundred times a second, over a second or more.
// starved: a process that waited for a lock without being granted it while another one alone was granted it again and
//   again, for a second in which nothing went wrong.
// leaked: what a client still held, awaited or listened to when all its callers had left; descriptors; keys,
//   subscriptions and connections that were on the servers after the longest lease; permits of a semaphore, beyond
//   those that killed processes may have had.
struct verdict {
  std::uint64_t sections = 0;
  std::uint64_t violations = 0;
  std::uint64_t lost_reported = 0;
  std::uint64_t lost_unreported = 0;
  std::uint64_t hung = 0;
  std::uint64_t leaked = 0;
  std::uint64_t late = 0;
  std::uint64_t storm = 0;
  std::uint64_t starved = 0;
  std::uint64_t excused = 0;  // overlaps that a stranger made
  std::uint64_t refused = 0;  // acquires that were busy or failed
  std::vector<std::string> findings;
  std::map<std::string, std::uint64_t> of_kind;

  bool good() const { return violations + lost_unreported + hung + leaked + late + storm + starved == 0; }
  std::string last_line() const;
};

verdict check(run_history const& run);

}  // namespace latchkey::torture
