// Each way of taking a lock, and each way of ending a hold, for what tests combine them.
#pragma once

#include <latchkey/latchkey.hpp>

#include <functional>
#include <string>
#include <vector>

namespace latchkey::outside {

// A kind of lock, and what the README says of it.
struct matrix_kind {
  std::string name;
  std::function<distributed_lock(client const&, std::string const&)> make;
  bool re_enters = true;  // else the owner is told already_held
  bool shared = false;    // several owners at once
  bool by_force = true;   // else force_unlock is bad_argument
  bool compares = false;  // the key is a string, not a hash
  std::string side{};     // what the owner's field ends with
  int members = 1;        // keys name-0, name-1 ... if there are several
};
std::vector<matrix_kind> const& matrix_kinds();

enum class taking {
  lock_by_thread,  // lock(), or try_lock() where that would wait
  try_by_thread,
  mutex_by_thread,
  async_by_thread,
  async_by_task,
  async_try_by_task,
  acquire_new,
  acquire_by_thread,
  acquire_by_task,
  async_acquire_by_task,
};
inline constexpr int takings = 10;

enum class ending {
  unlock_by_thread,
  mutex_by_thread,
  async_by_thread,
  async_by_task,
  release_first,  // the lease of the first taking
  release_second,
  async_release_first,
  async_release_second,
  drop_first,
  drop_second,
  force,
};
inline constexpr int endings = 11;

// Two takings and two endings, in every combination of ways and owners.
void play(matrix_kind const& kind);

std::string to_string(taking way);
std::string to_string(ending way);

}  // namespace latchkey::outside
