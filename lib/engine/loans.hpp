#pragma once

#include <base/instant.hpp>
#include <machine/client_machine.hpp>
#include <machine/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace latchkey::detail {

// The direct lanes, one to each server, and which calls have borrowed them. What it keeps is guarded by the client's
// mutex.
template <class Lane>
class loans {
 public:
  // The calling thread's share of a call that goes by a lane.
  struct loan {
    std::shared_ptr<Lane> lane;  // null: it is gone, and the borrower says so
    std::uint32_t serial = 0;    // 0: not lent
    instant now{};
  };

  void opened(std::shared_ptr<Lane> lane) { lanes_.push_back({.lane = std::move(lane)}); }
  std::shared_ptr<Lane> lane(std::uint32_t serial) const {
    auto const found = find(*this, serial);
    return found == lanes_.end() ? nullptr : found->lane;
  }
  // Nothing is lent any more.
  std::vector<std::shared_ptr<Lane>> end() {
    std::vector<std::shared_ptr<Lane>> made;
    for (auto& entry : lanes_) made.push_back(std::move(entry.lane));
    lanes_.clear();
    return made;
  }
  // It is to be shut, outside the mutex; null: there is none with this number.
  std::shared_ptr<Lane> end(std::uint32_t serial) {
    auto const found = find(*this, serial);
    if (found == lanes_.end()) return nullptr;
    auto made = std::move(found->lane);
    lanes_.erase(found);
    return made;
  }
  // The lanes in which borrowers of calls sleep that have ended without them.
  std::vector<std::shared_ptr<Lane>> of_ended_calls() const {
    std::vector<std::shared_ptr<Lane>> made;
    for (auto const& entry : lanes_)
      if (!entry.calls.empty() && std::all_of(entry.calls.begin(), entry.calls.end(), is_over))
        made.push_back(entry.lane);
    return made;
  }

  // The borrower keeps the calls until he has given the lane back.
  template <class Calls, class Machine>
  loan lend(std::uint32_t serial, Calls const& to, Machine& machine, instant now) {
    auto const found = find(*this, serial);
    if (found == lanes_.end()) return {nullptr, serial, now};
    found->calls.assign(to.begin(), to.end());
    found->lane->take(machine.lane_bytes(serial));
    return {found->lane, serial, now};
  }

  // The borrower, outside the mutex: sends, reads, and takes a step with what came. It goes when its own time is over,
  // or `done` says that nobody waits for that any more: the machine then resolves what was asked.
  template <class Flag, class Step>
  void drive(loan taken, instant end, Flag const& done, Step const& step) noexcept {
    for (;;) {
      error_code failed = errc::connection_lost;
      if (taken.lane) failed = taken.lane->exchange(taken.now, end, done);
      bool again = false;
      step([&](auto& machine, instant now, actions& out) {
        if (failed) {
          machine.lane_failed(taken.serial, failed, now, out);
        } else if (machine.lane_answer(taken.serial, taken.lane->answer(), now, out) ==
                   client_machine::lane_next::send_again) {
          taken.lane->take(machine.lane_bytes(taken.serial));
          taken.now = now;
          again = true;
        }
        if (auto const found = find(*this, taken.serial); !again && found != lanes_.end()) found->calls.clear();
      });
      if (!again) return;
    }
  }

 private:
  struct lane_of {
    std::shared_ptr<Lane> lane;
    std::vector<operation const*> calls{};  // for which, while it is lent
  };
  static bool is_over(operation const* call) { return call->where == operation::place::idle; }

  template <class Self>
  static auto find(Self& in, std::uint32_t serial) {
    return std::find_if(in.lanes_.begin(), in.lanes_.end(),
                        [serial](auto const& entry) { return entry.lane->serial() == serial; });
  }

  std::vector<lane_of> lanes_;
};

}  // namespace latchkey::detail
