#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace demo {

/// How a request makes sure that it is alone with the stock.
enum class way { no_lock, recipe, latchkey_threads, latchkey_coroutines, latchkey_recursion };

enum class pause_kind { none, yield, sleep };

/// What a recipe does between two attempts: `first` until `change_after` has passed since its first attempt, then
/// `then`.
struct retry_rule {
  pause_kind first = pause_kind::none;
  std::chrono::milliseconds change_after{0};
  pause_kind then = pause_kind::none;
  std::chrono::milliseconds sleep{0};
};

/// One row of the table.
struct row {
  std::string_view name;
  std::string_view label;
  std::string_view meaning;
  way how;
  retry_rule retry{};
  int levels = 2;  // of functions that take the lock, each inside the one before
};

/// Recipes lock with the server that they work with.
constexpr bool can_lock_in_cluster(way how) { return how != way::recipe; }

constexpr bool is_latchkey(way how) { return how != way::no_lock && how != way::recipe; }

std::span<row const> all_rows();

/// The position of a row in `all_rows()`; empty if there is none of that name.
std::optional<std::size_t> find_row(std::string_view name);

/// All names, separated by commas.
std::string row_names();

/// What to do now, `waited` after the first attempt.
constexpr pause_kind pause_now(retry_rule const& rule, std::chrono::nanoseconds waited) {
  return waited < rule.change_after ? rule.first : rule.then;
}

/// Where the lock is. In a cluster the stock is elsewhere.
enum class lock_place {
  with_stock,
  cluster,
  failing_cluster,  ///< its master is killed in the middle of each row
};

/// What the command line asks for.
struct options {
  std::int64_t requests = 2000;
  std::int64_t concurrency = 1000;
  std::int64_t stock = 100'000;
  std::int64_t processes = 4;
  std::int64_t think_us = 200;
  /// A recipe is cut off after this many seconds.
  std::int64_t limit_s = 10;
  lock_place locks = lock_place::with_stock;
  /// Names of rows; empty: all of them that can be.
  std::vector<std::string> only;
  /// Where to write the results as JSON; empty: nowhere.
  std::string json;
  bool help = false;
};

/// A command line that cannot be followed; the text says why.
struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads `--name value` and `--name=value`.
/// \throws bad_option
options parse_options(std::vector<std::string> const& arguments);

/// What `--help` prints.
std::string help_text();

}  // namespace demo
