#include <api/permit_calls.hpp>

#include <algorithm>
#include <limits>

namespace latchkey::detail {

refusal check_least(std::int64_t number, std::int64_t least) {
  if (number >= least) return {};
  return {errc::bad_argument, "the number must be at least " + std::to_string(least)};
}

refusal fill_take(operation& call, lock_key const& key, take_request const& asked) {
  if (auto wrong = fill_acquire(call, key, {owner::make(), asked.wait, asked.lease, std::nullopt})) return wrong;
  call.keeps = false;
  call.amount = asked.amount;
  call.argument = key.permits();
  return check_least(asked.amount, 1);
}

refusal fill_command(operation& call, lock_key const& key, command_request asked) {
  if (asked.wrong) return asked.wrong;
  if (auto wrong = fill_query(call, key, query::value, owner::make())) return wrong;  // what all calls need
  call.what = operation::type::command;
  call.command = asked.command;
  call.amount = asked.amount;
  call.lease = asked.lease;
  if (!asked.argument.empty()) call.argument = std::make_shared<std::string const>(std::move(asked.argument));
  return {};
}

bool take(lock_key const& key, take_request const& asked) { return run_call(key, fill_take, asked).yes; }

std::int64_t command(lock_key const& key, command_request asked) {
  return run_call(key, fill_command, std::move(asked)).value;
}

std::int64_t value_of(lock_key const& key) { return run_call(key, fill_query, query::value, std::nullopt).value; }

int as_int(std::int64_t number) {
  using limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<std::int64_t>(number, limits::min(), limits::max()));
}

}  // namespace latchkey::detail
