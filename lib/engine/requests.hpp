#pragma once

#include <engine/lock_key.hpp>
#include <latchkey/acquire_options.hpp>
#include <latchkey/fwd.hpp>
#include <latchkey/owner.hpp>
#include <machine/operation.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace latchkey::detail {

// What is wrong with a call before anything is sent; converts to true if something is.
struct refusal {
  error_code code;
  std::string text;
  explicit operator bool() const { return code.failed(); }
};

// A wait of zero or less is one attempt; no wait is for ever.
struct acquire_request {
  owner who;
  std::optional<milliseconds> wait;
  std::optional<milliseconds> lease;
  std::optional<milliseconds> max_hold;
};

// Each fills an operation from what the caller said.
refusal fill_acquire(operation& call, lock_key const& key, acquire_request const& asked);
// What is wrong with the options that the lease keeps.
refusal check_options(lock_key const& key, acquire_options const& options);
refusal fill_extend(operation& call, lock_key const& key, owner who, hold_id hold, milliseconds length);
refusal fill_release(operation& call, lock_key const& key, owner who, hold_id hold);
// What a lease may be.
refusal check_lease(milliseconds length);
refusal fill_force_unlock(operation& call, lock_key const& key);
// Of this holder alone.
refusal fill_force_unlock_of(operation& call, lock_key const& key, holder const& who);
refusal fill_query(operation& call, lock_key const& key, query what, std::optional<owner> who);
// A hold that the server has shown: how long it still lasts is the value of the question, asked when that started.
refusal fill_adopt(operation& call, lock_key const& key, owner who, operation const& asked);
refusal fill_connect(operation& call, lock_key const& key, std::optional<milliseconds> wait);

// Throws what a blocking call is to throw before it starts.
void check_blocking(lock_key const& key);
void throw_if(refusal const& wrong);
// Throws what the operation ended with, if it failed.
void throw_if(operation const& call);

// Runs a blocking call, and throws what it ended with.
struct call_result {
  bool yes;
  std::int64_t value;
};
template <class Fill, class... Args>
call_result run_call(lock_key const& key, Fill const& fill, Args&&... args) {
  check_blocking(key);
  blocking_call call;
  throw_if(fill(call, key, std::forward<Args>(args)...));
  key.run(call);
  throw_if(call);
  return {call.yes, call.value};
}

}  // namespace latchkey::detail
