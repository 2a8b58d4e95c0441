#include "rows.hpp"

#include <array>

namespace demo {
namespace {

using namespace std::chrono_literals;
using enum pause_kind;

constexpr std::array<row, 9> rows{{
    {"no-lock", "no lock", "nothing keeps the requests apart", way::no_lock},
    {"busy-yield",
     "SET NX, busy then yield",
     "try again at once for 600 ms, then yield between attempts",
     way::recipe,
     {none, 600ms, yield, 0ms}},
    {"yield-sleep",
     "SET NX, yield then sleep",
     "yield between attempts for 600 ms, then sleep 200 ms",
     way::recipe,
     {yield, 600ms, sleep, 200ms}},
    {"sleep-200ms", "SET NX, sleep 200 ms", "sleep 200 ms between attempts", way::recipe, {none, 0ms, sleep, 200ms}},
    {"sleep-2s", "SET NX, sleep 2 s", "sleep 2 s between attempts", way::recipe, {none, 0ms, sleep, 2000ms}},
    {"yield", "SET NX, always yield", "yield between attempts", way::recipe, {none, 0ms, yield, 0ms}},
    {"threads", "latchkey, threads", "each request blocks its thread in acquire()", way::latchkey_threads},
    {"coroutines", "latchkey, coroutines", "each request is a coroutine, one thread per process",
     way::latchkey_coroutines},
    {"recursion", "latchkey, recursive", "the outer and the inner function take the lock", way::latchkey_recursion},
}};

}  // namespace

std::span<row const> all_rows() { return rows; }

std::optional<std::size_t> find_row(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

std::string row_names() {
  std::string names;
  for (auto const& each : rows) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

}  // namespace demo
