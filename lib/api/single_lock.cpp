#include <api/single_lock.hpp>

namespace latchkey::detail {

single_lock::single_lock(std::shared_ptr<core> client, std::string called, kind const& sort, unsigned char side)
    : lock_key(std::move(client), std::move(called), &sort, side) {}

void single_lock::start(call& one) const { engine->start(one); }
void single_lock::run(blocking_call& one, std::stop_token const& stop) const { engine->run(one, stop); }
void single_lock::cancel(call& one) const { engine->cancel(one); }
instant single_lock::expire(call& one) const { return engine->expire(one); }
void single_lock::drop(std::uint64_t owner, hold_id hold) const { engine->drop(*which, name, owner, hold); }

void single_lock::renew_no_longer(std::uint64_t owner, hold_id hold) const {
  engine->renew_no_longer(*which, name, owner, hold);
}

bool single_lock::keeps_out(std::uint64_t owner) const { return engine->keeps_out(*which, name, owner, mode); }

std::string_view single_lock::refuses(operation::type what, query question) const {
  bool const no_tokens = what == operation::type::query && question == query::token && !which->rules().tokens;
  return no_tokens ? "only a fenced lock has fencing tokens" : "";
}

bool single_lock::forked() const { return engine->forked(); }
bool single_lock::inside() const { return engine->threads().inside(); }
instant single_lock::budget_end(instant start) const { return engine->budget_end(start); }
milliseconds single_lock::watchdog_time() const { return engine->settings().lock_watchdog_timeout; }

}  // namespace latchkey::detail
