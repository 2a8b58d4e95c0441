#pragma once

#include <engine/lock_key.hpp>

namespace latchkey::detail {

// One name: its client does everything.
class single_lock : public lock_key {
 public:
  single_lock(std::shared_ptr<core> client, std::string called, kind const& sort, unsigned char in_mode = 0)
      : lock_key(std::move(client), std::move(called), &sort, in_mode) {}

  void start(call& call) const override { engine->start(call); }
  void run(blocking_call& call, std::stop_token const& stop) const override { engine->run(call, stop); }
  void cancel(call& call) const override { engine->cancel(call); }
  instant expire(call& call) const override { return engine->expire(call); }
  void drop(std::uint64_t owner, hold_id hold) const override {
    engine->machine_steps().take([&](client_machine& machine, instant now, actions& out) {
      machine.unlink(*which, name, owner, hold);
      machine.drop(*which, name, owner, hold, now, out);
    });
  }
  void renew_no_longer(std::uint64_t owner, hold_id hold) const override {
    engine->machine_steps().take(
        [&](client_machine& machine, instant, actions&) { machine.renew_no_longer(*which, name, owner, hold); });
  }

  bool keeps_out(std::uint64_t owner) const override {
    return engine->machine_steps().look(
        [&](client_machine& machine) { return machine.keeps_out(*which, name, owner, mode); });
  }
  std::string_view refuses(operation::type what, query question) const override {
    bool const no_tokens = what == operation::type::query && question == query::token && !which->rules().tokens;
    return no_tokens ? "only a fenced lock has fencing tokens" : "";
  }
  nanoseconds drift(milliseconds) const override { return engine->settings().clock_margin; }
  bool forked() const override { return engine->forked(); }
  bool inside() const override { return engine->threads().inside(); }
  instant budget_end(instant start) const override { return engine->budget_end(start); }
  milliseconds watchdog_time() const override { return engine->settings().lock_watchdog_timeout; }
};

// A semaphore whose caller says how many permits there are.
class counted_semaphore final : public single_lock {
 public:
  counted_semaphore(std::shared_ptr<core> client, std::string called, kind const& sort, int permits)
      : single_lock(std::move(client), std::move(called), sort),
        permits_(std::make_shared<std::string const>(std::to_string(permits))) {}

  std::shared_ptr<std::string const> permits() const override { return permits_; }

 private:
  std::shared_ptr<std::string const> const permits_;
};

}  // namespace latchkey::detail
