#pragma once

#include <torture/history.hpp>
#include <torture/kinds.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::torture {

// One section, put together from the lines of its process. Times are 0 where something did not happen.
struct section {
  process_history const* of = nullptr;
  std::uint64_t number = 0;
  std::uint16_t slot = 0;
  std::uint8_t kind = 0;
  std::uint32_t lock = 0;
  std::uint32_t mode = 0;
  std::int64_t asked = 0, lease = 0, ask_limit = 0;
  std::int64_t wait = 0;  // 0: one attempt
  std::int64_t granted = 0, refused = 0;
  std::uint64_t token = 0;
  std::int64_t left = 0, trusted = 0, longest = 0, release_limit = 0;
  std::uint32_t told = 0;
  std::int64_t released = 0;
  std::uint32_t code = 0;  // of the refusal, then of the release

  bool reads() const { return (mode & mode::shared) != 0; }
  bool was_trusted() const { return granted != 0 && trusted > granted; }
  bool ended_as(outcome how) const { return released != 0 && code == static_cast<std::uint32_t>(how); }
  std::string name() const;
};

struct other_call {
  process_history const* of = nullptr;
  std::uint64_t number = 0;
  std::uint8_t kind = 0;
  std::uint32_t lock = 0;
  call which{};
  std::int64_t begun = 0, limit = 0, ended = 0, value = 0;
  std::uint32_t error = 0;
};

using interval = std::pair<std::int64_t, std::int64_t>;
using lock_id = std::pair<std::uint8_t, std::uint32_t>;

struct deletion {
  std::int64_t begin, end;
  bool certain;  // it removed whoever held then
};

struct reconnections {
  std::int64_t begin, end, count;
  int worker;
};

// What a failover may undo, as docs/topologies.md says: it is counted apart.
struct allowances {
  bool counts = false;  // of permits and latches
  bool holds = false;   // of grants that not every replica had
};

// All sections of a run and what happened around them.
struct assembled {
  std::vector<section> sections;
  std::vector<other_call> calls;
  std::map<process_history const*, std::vector<std::int64_t>> disconnects;
  std::map<process_history const*, std::int64_t> killed;  // when
  std::set<process_history const*> over, overdue;
  std::map<int, std::vector<interval>> pauses;   // by index of the worker; `stalls` among them
  std::vector<interval> stalls;                  // of the whole machine
  std::map<int, std::vector<interval>> outages;  // by server
  std::map<lock_id, std::vector<deletion>> deletions;
  std::vector<interval> faults;
  std::vector<reconnections> connects;
  allowances may;

  std::map<lock_id, std::vector<section const*>> by_lock() const;
  // How long a call took, the times left out at which its process or the machine stood still.
  std::int64_t net(process_history const& of, std::int64_t from, std::int64_t to) const;
};

assembled assemble(run_history const& run, allowances const& may = {});

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
  std::uint64_t documented = 0;  // what allowances allow
  std::uint64_t excused = 0;     // overlaps that a stranger made
  std::uint64_t refused = 0;     // acquires that were busy or failed
  bool whole = true;             // the run came to its end
  std::vector<std::string> findings;
  std::map<std::string, std::uint64_t> of_kind;

  bool good() const { return whole && violations + lost_unreported + hung + leaked + late + storm + starved == 0; }
  std::string last_line() const;
};

verdict check(run_history const& run, allowances const& may = {});

// The parts of check(); each counts and tells what it found. What counts is written in checker.hpp.
void check_exclusion(assembled const& all, verdict& out);
void check_tokens(assembled const& all, verdict& out);
void check_latches(assembled const& all, verdict& out);
void check_losses(assembled const& all, verdict& out);
void check_calls(assembled const& all, verdict& out);
void check_shares(assembled const& all, verdict& out);
void check_storms(assembled const& all, verdict& out);
void check_pools(run_history const& run, assembled const& all, verdict& out);
void check_remains(run_history const& run, verdict& out);

constexpr std::size_t most_findings = 50;   // are told; all are counted
constexpr std::int64_t grace = 3 * second;  // what a busy machine may add to a call before it counts as hung
constexpr std::int64_t lateness = second;   // and before it counts as late

inline void tell(verdict& out, std::uint64_t& counter, std::string text) {
  ++counter;
  if (out.findings.size() < most_findings) out.findings.push_back(std::move(text));
}

inline void tell_unless(bool documented, verdict& out, std::uint64_t& counter, std::string text) {
  documented ? static_cast<void>(++out.documented) : tell(out, counter, std::move(text));
}

// Do these two keep each other out?
inline bool exclusive(section const& a, section const& b) { return !a.reads() || !b.reads(); }

// Milliseconds, for a reader.
std::string in_ms(std::int64_t nanoseconds);

}  // namespace latchkey::torture
