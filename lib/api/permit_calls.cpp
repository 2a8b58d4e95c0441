#include <api/permit_calls.hpp>

#include <algorithm>
#include <limits>

namespace latchkey::detail {

refusal check_least(std::int64_t number, std::int64_t least) {
  if (number >= least) return {};
  return {errc::bad_argument, "the number must be at least " + std::to_string(least)};
}

refusal fill_take(operation& one, lock_key const& key, take_request const& asked) {
  if (auto wrong = fill_acquire(one, key, {owner::make(), asked.wait, asked.lease, std::nullopt})) return wrong;
  one.keeps = false;
  one.amount = asked.amount;
  one.argument = key.permits;
  return check_least(asked.amount, 1);
}

refusal fill_command(operation& one, lock_key const& key, command_request asked) {
  if (asked.wrong) return asked.wrong;
  if (auto wrong = fill_query(one, key, query::value, owner::make())) return wrong;  // what all calls need
  one.what = operation::type::command;
  one.command = asked.command;
  one.amount = asked.amount;
  one.lease = asked.lease;
  if (!asked.argument.empty()) one.argument = std::make_shared<std::string const>(std::move(asked.argument));
  return {};
}

void run_take(blocking_call& one, lock_key const& key, take_request const& asked) {
  check_blocking(key);
  throw_if(fill_take(one, key, asked));
  key.engine->run(one);
  throw_if(one);
}

bool take(lock_key const& key, take_request const& asked) {
  blocking_call one;
  run_take(one, key, asked);
  return one.yes;
}

std::int64_t command(lock_key const& key, command_request asked) {
  check_blocking(key);
  blocking_call one;
  throw_if(fill_command(one, key, std::move(asked)));
  key.engine->run(one);
  throw_if(one);
  return one.value;
}

std::int64_t value_of(lock_key const& key) {
  check_blocking(key);
  blocking_call one;
  throw_if(fill_query(one, key, query::value, std::nullopt));
  key.engine->run(one);
  throw_if(one);
  return one.value;
}

int as_int(std::int64_t number) {
  using limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<std::int64_t>(number, limits::min(), limits::max()));
}

}  // namespace latchkey::detail
