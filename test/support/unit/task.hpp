#pragma once

#include <machine/hold_link.hpp>
#include <machine/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace latchkey::test {

using detail::instant;
using detail::milliseconds;

struct task;

// Where a task's hold is shown.
struct shown_hold : detail::hold_link {
  task* of = nullptr;
};

// One call of a user in a test, and what became of it.
struct task : detail::operation {
  std::string key;
  std::string label;  // for histories
  std::size_t client = 0;
  bool direct = false;  // a blocking caller, who may borrow the direct lane
  shown_hold shown;
  int completions = 0;
  instant done_at{};
  int losses = 0;
  error_code why_lost;
  bool ended = false;    // released or dropped
  bool removed = false;  // somebody else took it away on the server, so it is not what the server remembers

  bool done() const { return completions > 0; }
  bool granted() const { return done() && yes && (what == type::acquire || what == type::adopt); }
  bool busy() const { return done() && !yes && !error; }
  // Its owner believes to hold it.
  bool trusted(instant now) const {
    return granted() && !ended && !shown.lost.load(std::memory_order_relaxed) && shown.until() > now;
  }
};

// How a call is made. A wait below zero: for ever.
struct how {
  std::string name = "k";
  milliseconds wait{-1};
  milliseconds lease{0};
  milliseconds max_hold{0};
  milliseconds lock_delay{0};
  milliseconds progress_within{0};
  milliseconds line_time{300'000};
  bool direct = false;
  std::size_t client = 0;
  detail::kind const* which = nullptr;  // null: the reentrant lock
  unsigned char mode = 0;
  std::uint64_t bundle = 0;
  bool member = false;      // of a joint lock
  bool comes_back = false;  // which waits for the busy one
  std::int64_t amount = 1;
  bool keeps = true;
  bool leased = true;  // false: as lock(), without a lease that shows the hold
  std::string argument{};
};

}  // namespace latchkey::test
