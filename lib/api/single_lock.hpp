#pragma once

#include <engine/lock_key.hpp>

namespace latchkey::detail {

// One name: its client does everything.
class single_lock final : public lock_key {
 public:
  single_lock(std::shared_ptr<core> engine, std::string name, kind const& which, unsigned char mode = 0);

  void start(call& one) const override;
  void run(blocking_call& one, std::stop_token const& stop) const override;
  void cancel(call& one) const override;
  instant expire(call& one) const override;
  void drop(std::uint64_t owner, hold_id hold) const override;
  void renew_no_longer(std::uint64_t owner, hold_id hold) const override;

  bool keeps_out(std::uint64_t owner) const override;
  std::string_view refuses(operation::type what, query question) const override;
  nanoseconds drift(milliseconds) const override { return nanoseconds(0); }
  bool forked() const override;
  bool inside() const override;
  instant budget_end(instant start) const override;
  milliseconds watchdog_time() const override;
};

}  // namespace latchkey::detail
