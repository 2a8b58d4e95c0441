#pragma once

#include <base/instant.hpp>
#include <latchkey/config.hpp>
#include <latchkey/stats.hpp>
#include <machine/actions.hpp>
#include <machine/agenda.hpp>
#include <machine/record.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace latchkey::detail {

class outbox;
class subscriptions;
class watchdog;

// What all machines of one client share. `now` and `out` are those of the step that is being taken.
struct context {
  explicit context(config const& given) : settings(given), observed(static_cast<bool>(given.on_event)) {}

  config const settings;
  bool const observed;  // somebody listens to events
  std::string client_id;
  agenda timers;
  stats counters;
  spare_storage spare_records;
  std::deque<kind_stats> by_kind;  // never moved: every name looks at its own
  bool closed = false;
  bool broken = false;       // memory was short in the middle of a step: nothing of the names and the session is true
  operation_list under_way;  // all calls that are not completed

  instant now{};
  actions* out = nullptr;

  outbox* requests = nullptr;
  subscriptions* channels = nullptr;
  watchdog* renewals = nullptr;

  // The direct lane, as long as one call is being started: offered, and then perhaps taken by one record or call.
  bool lane_offered = false;
  record* lane_record = nullptr;
  operation* lane_plain = nullptr;

  // Lost holds whose owners have not yet called unlock, oldest first; at most `most_lost` are remembered.
  static constexpr std::size_t most_lost = 1'024;
  boost::intrusive::list<hold> lost_holds;

  // Why there is no connection, in the words of the last attempt; empty while there is one.
  std::string trouble;

  hold_id next_hold = 1;
  std::uint64_t random_state = 1;

  // In [low, high]; splitmix64, so that a seed replays.
  std::int64_t random(std::int64_t low, std::int64_t high);

  // The pause before attempt `n` (from 1): doubles from a thirty-second of `most`, half of it random.
  milliseconds pause(unsigned n, milliseconds most);

  void note(event_type type, std::string_view lock = {}, std::uint64_t owner = 0, error_code error = {},
            std::string_view text = {}, nanoseconds took = {}, std::string_view kind = {});

  // The engine is to tell its caller.
  void complete(operation& call);

  // The counters of a kind.
  kind_stats& tally(std::string_view kind);
};

// Adds one time to a histogram.
void count(histogram& times, nanoseconds took);

}  // namespace latchkey::detail
