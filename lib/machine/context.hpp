#pragma once

#include <base/instant.hpp>
#include <latchkey/config.hpp>
#include <latchkey/stats.hpp>
#include <machine/actions.hpp>
#include <machine/barred_owners.hpp>
#include <machine/owner_state.hpp>
#include <machine/recent_releases.hpp>
#include <machine/timer_queue.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

class either_waiters;

// What all machines of one client share. `now` and `out` are those of the step that is being taken.
struct context {
  explicit context(config const& given);
  ~context();

  config const settings;
  bool const observed;  // somebody listens to events
  std::string client_id;
  timer_queue timers;
  stats counters;
  std::vector<script const*> scripts;  // by which names so far are acquired and released; none twice
  spare_storage spares;
  spare_list<either_waiters> spare_waiters;
  std::uint64_t last_ticket = 0;  // of a wait_queue that is forgotten
  recent_owners recent;
  std::deque<kind_stats> by_kind;  // never moved: every name looks at its own
  // closing: no new calls; holders have been told, and leases may still be released.
  enum class stage : unsigned char { open, closing, closed };
  stage at = stage::open;
  bool closed() const { return at == stage::closed; }
  std::size_t shown = 0;      // live holds that leases show, and others whose release the end awaits
  int servers_up = 0;         // that can be asked
  std::size_t under_way = 0;  // calls that are not completed

  // By this machine's clock; empty: those of servers need not agree with it.
  std::function<std::chrono::microseconds()> time_of_day;

  instant now{};
  actions* out = nullptr;

  // When a lease that was asked for then ends for its holder, whatever clock ends it on a server.
  instant trusted_end(instant sent, milliseconds lease) const;
  // Forgets which releases no failover can lose any more, whatever servers there are.
  void forget_ended_releases() { released.forget_ended(now - settings.clock_margin); }

  barred_owners barred;           // until servers that were replaced have answered
  recent_releases released;       // stays empty where no other server ever takes over
  bool may_move = false;          // another server may have a name one day
  home const* answers = nullptr;  // of the server whose answer is being read
  // Nobody is told of what the next master may not have.
  bool asks_replicas() const { return may_move && settings.check_lock_synced_replicas; }

  // The direct lane, as long as calls are being started: offered, and then perhaps taken by one call, or by owners
  // whose requests leave together.
  bool lane_offered = false;
  std::vector<owner_state*> lane_records;
  operation* lane_plain = nullptr;

  // Owners of whom a call was completed in this step: what they leave goes when nothing looks at it any more.
  std::vector<std::pair<name_machine const*, std::uint64_t>> served;
  void serve(name_machine const& by, std::uint64_t owner) {
    std::pair const one(&by, owner);
    if (served.empty() || served.back() != one) served.push_back(one);
  }
  void forget_served(name_machine const& by) {
    std::erase_if(served, [&by](auto const& one) { return one.first == &by; });
  }

  // Lost holds whose owners have not yet called unlock, oldest first; at most `most_lost` are remembered.
  static constexpr std::size_t most_lost = 1'024;
  std::vector<hold*> lost_holds;

  // The server refuses our PUBLISH, and that of others like us: a release by them is told to nobody.
  bool unpublished = false;

  // What no event and no error may contain, whatever the server repeats.
  std::string secret;
  std::string without_secret(std::string_view text) const;

  hold_id next_hold = 1;
  // No owner has such a number; see tenure::stand_in.
  static constexpr std::uint64_t no_owner = std::uint64_t{1} << 62;
  static constexpr std::uint64_t first_stand_in = no_owner + 1;
  std::uint64_t next_stand_in = first_stand_in;
  std::uint32_t next_serial = 1;  // of a connection, whatever server it leads to
  std::uint64_t random_state = 1;

  // In [low, high]; splitmix64, so that a seed replays.
  std::int64_t random(std::int64_t low, std::int64_t high);

  // The pause before attempt `n` (from 1): doubles from a thirty-second of `most`, half of it random.
  milliseconds pause(unsigned n, milliseconds most);

  void note(event_type type, std::string_view lock = {}, std::uint64_t owner = 0, error_code error = {},
            std::string_view text = {}, nanoseconds took = {}, std::string_view kind = {}, std::uint64_t about = 0);

  // An attempt of a call without a wait has failed in a way that passes. False: it was the last one. Where another
  // server may take over each has `timeout`, however soon it failed: an election is slower than any refusal.
  bool goes_on(operation& call, home const& whose) const;

  // The engine is to tell its caller.
  void complete(operation& call);
  // Makes the error of a call that ends tell what may be left behind, and its text why: may_still_be_held asks for no
  // more than the code.
  void explain(operation& call, home const& whose) const;

  // The counters of a kind.
  kind_stats& tally(std::string_view kind);
};

// Adds one time to a histogram.
void count(histogram& times, nanoseconds took);

}  // namespace latchkey::detail
