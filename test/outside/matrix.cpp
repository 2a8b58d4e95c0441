#include <outside/matrix.hpp>

#include <array>

namespace latchkey::outside {

std::vector<matrix_kind> const& matrix_kinds() {
  using c = client const&;
  using text = std::string const&;
  static std::vector<matrix_kind> const all{
      {.name = "lock", .make = [](c from, text name) { return from.get_lock(name); }},
      {.name = "non_reentrant_lock",
       .make = [](c from, text name) { return from.get_non_reentrant_lock(name); },
       .re_enters = false},
      {.name = "fair_lock", .make = [](c from, text name) { return from.get_fair_lock(name); }},
      {.name = "spin_lock", .make = [](c from, text name) { return from.get_spin_lock(name); }},
      {.name = "fenced_lock", .make = [](c from, text name) { return from.get_fenced_lock(name); }},
      {.name = "plain_lock",
       .make = [](c from, text name) { return from.get_plain_lock(name); },
       .re_enters = false,
       .compares = true},
      {.name = "read_lock",
       .make = [](c from, text name) { return from.get_read_write_lock(name).read_lock(); },
       .shared = true},
      {.name = "write_lock",
       .make = [](c from, text name) { return from.get_read_write_lock(name).write_lock(); },
       .side = ":write"},
      {.name = "multi_lock",
       .make =
           [](c from, text name) {
             return from.get_multi_lock({from.get_lock(name + "-0"), from.get_lock(name + "-1")});
           },
       .by_force = false,
       .members = 2},
      {.name = "red_lock",
       .make =
           [](c from, text name) {
             return from.get_red_lock(
                 {from.get_lock(name + "-0"), from.get_lock(name + "-1"), from.get_lock(name + "-2")});
           },
       .by_force = false,
       .members = 3},
  };
  return all;
}

std::string to_string(taking way) {
  static constexpr std::array<char const*, takings> names{
      "lock() by the thread",        "try_lock() by the thread", "std_mutex::lock() by the thread",
      "async_lock by the thread",    "async_lock by a task",     "async_try_lock by a task",
      "acquire() by a new owner",    "acquire() by the thread",  "acquire() by the task",
      "async_acquire() by the task",
  };
  return names[static_cast<std::size_t>(way)];
}

std::string to_string(ending way) {
  static constexpr std::array<char const*, endings> names{
      "unlock()",
      "std_mutex::unlock()",
      "async_unlock(thread)",
      "async_unlock(task)",
      "release() of the first lease",
      "release() of the second lease",
      "async_release() of the first lease",
      "async_release() of the second lease",
      "end of the first lease's life",
      "end of the second lease's life",
      "force_unlock()",
  };
  return names[static_cast<std::size_t>(way)];
}

}  // namespace latchkey::outside
