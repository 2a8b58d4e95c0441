#pragma once

#include <base/instant.hpp>
#include <machine/client_machine.hpp>
#include <machine/operation.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace latchkey::detail {

// The direct lane, and which call has borrowed it. What it keeps is guarded by the client's mutex.
template <class Lane>
class loans {
 public:
  // The calling thread's share of a call that goes by the lane.
  struct loan {
    std::shared_ptr<Lane> lane;  // null: it is gone, and the borrower says so
    std::uint32_t serial = 0;    // 0: not lent
    instant now{};
  };

  void opened(std::shared_ptr<Lane> lane) { lane_ = std::move(lane); }
  std::shared_ptr<Lane> lane() const { return lane_; }
  // Nothing is lent any more, whatever its number is.
  std::shared_ptr<Lane> end() { return std::exchange(lane_, nullptr); }
  // It is to be shut, outside the mutex; null: it is another one's number.
  std::shared_ptr<Lane> end(std::uint32_t serial) { return lane_ && lane_->serial() == serial ? end() : nullptr; }
  // The lane in which the borrower of a call sleeps that has ended without it.
  std::shared_ptr<Lane> of_ended_call() const {
    return lent_ != 0 && borrower_->where == operation::place::idle ? lane_ : nullptr;
  }

  template <class Machine>
  loan lend(operation const& to, Machine& machine, instant now) {
    loan made{nullptr, machine.lane_serial(), now};
    lent_ = made.serial;
    borrower_ = &to;
    if (lane_ && lane_->serial() == made.serial) {
      made.lane = lane_;
      made.lane->take(machine.lane_bytes());
    }
    return made;
  }

  // The borrower, outside the mutex: sends, reads, and takes a step with what came. It goes when its own time is over,
  // or its call has ended otherwise: the machine then resolves the request.
  template <class Call, class Step>
  void drive(loan taken, Call const& one, Step const& step) noexcept {
    instant const end = one.limit();
    for (;;) {
      error_code failed = errc::connection_lost;
      if (taken.lane) failed = taken.lane->exchange(taken.now, end, one.done);
      bool again = false;
      step([&](auto& machine, instant now, actions& out) {
        if (failed) {
          machine.lane_failed(taken.serial, failed, now, out);
        } else if (machine.lane_answer(taken.serial, taken.lane->answer(), now, out) ==
                   client_machine::lane_next::send_again) {
          taken.lane->take(machine.lane_bytes());
          taken.now = now;
          again = true;
        }
        if (!again && lent_ == taken.serial) lent_ = 0;
      });
      if (!again) return;
    }
  }

 private:
  std::shared_ptr<Lane> lane_;
  std::uint32_t lent_ = 0;
  operation const* borrower_ = nullptr;  // for which call, while it is lent
};

}  // namespace latchkey::detail
