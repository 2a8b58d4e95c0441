#pragma once

#include <api/async_call.hpp>
#include <engine/requests.hpp>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

// What semaphores and latches share: calls that take something and keep no hold, and commands of the kind's own.
namespace latchkey::detail {

// Every such call has an owner of its own, whose field on the server is the name of the request.
struct take_request {
  std::int64_t amount = 1;
  std::optional<milliseconds> wait{};  // none: for ever
  std::optional<milliseconds> lease{};
};

struct command_request {
  unsigned char command = 0;
  std::int64_t amount = 0;
  milliseconds lease{0};
  std::string argument{};
  refusal wrong{};  // of the arguments
};

refusal fill_take(operation& call, lock_key const& key, take_request const& asked);
refusal fill_command(operation& call, lock_key const& key, command_request asked);

// A number that must be at least so much.
refusal check_least(std::int64_t number, std::int64_t least);

// The blocking forms; they throw what the call ended with.
bool take(lock_key const& key, take_request const& asked);
std::int64_t command(lock_key const& key, command_request asked);
std::int64_t value_of(lock_key const& key);

// As the server counts, so far as an int can show it.
int as_int(std::int64_t number);

// How such calls end.
inline auto const end_plainly = [](operation const& call) { return std::tuple(call.error); };
inline auto const end_with_grant = [](operation const& call) {
  return std::tuple(call.error, !call.error && call.yes);
};
inline auto const end_with_yes = [](operation const& call) {
  return std::tuple(call.error, !call.error && call.value != 0);
};
inline auto const end_with_int = [](operation const& call) {
  return std::tuple(call.error, call.error ? 0 : as_int(call.value));
};

}  // namespace latchkey::detail
