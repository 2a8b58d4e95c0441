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

// All sections of a run and what happened around them.
struct assembled {
  std::vector<section> sections;
  std::vector<other_call> calls;
  std::map<process_history const*, std::vector<std::int64_t>> disconnects;
  std::map<process_history const*, std::int64_t> killed;  // when
  std::set<process_history const*> over, overdue;
  std::map<int, std::vector<interval>> pauses;  // by index of the worker
  std::vector<interval> stalls;
  std::map<int, std::vector<interval>> outages;  // by server
  std::map<lock_id, std::vector<deletion>> deletions;
  std::vector<interval> faults;
  std::vector<reconnections> connects;

  std::map<lock_id, std::vector<section const*>> by_lock() const;
  // How long a call took, the times left out at which its process or the machine stood still.
  std::int64_t net(process_history const& of, std::int64_t from, std::int64_t to) const;
};

assembled assemble(run_history const& run);

}  // namespace latchkey::torture
