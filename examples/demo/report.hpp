#pragma once

#include "options.hpp"
#include "worker.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace demo {

/// What the table says about one row.
struct row_result {
  std::string name;
  std::string label;
  way how = way::no_lock;
  std::int64_t requested = 0;
  std::int64_t done = 0;
  std::int64_t bought = 0;      ///< requests that were told they bought
  std::int64_t stock_fell = 0;  ///< by how much the stock really fell
  std::int64_t lost = 0;        ///< requests whose lock was lost while they worked
  std::int64_t failed = 0;      ///< requests that ended with an error
  std::int64_t hung = 0;        ///< requests that did not even end when the time was over
  bool cut_off = false;         ///< the time limit ended it
  double seconds = 0;
  double p50_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  double longest_ms = 0;
  std::int64_t commands = 0;  ///< sent by clients
  double cpu_ms = 0;          ///< of all workers
  bool master_killed = false;
  std::string error;

  bool finished() const { return done + lost + failed == requested; }
  std::int64_t oversold() const { return bought - stock_fell; }
  double per_second() const { return seconds > 0 ? static_cast<double>(done) / seconds : 0; }
  double commands_per_request() const { return per_request(static_cast<double>(commands)); }
  double cpu_ms_per_request() const { return per_request(cpu_ms); }

 private:
  double per_request(double all) const { return done > 0 ? all / static_cast<double>(done) : 0; }
};

/// The least value that is not exceeded by `percent` per cent of the values (nearest rank). Sorted input; empty: 0.
double percentile(std::vector<double> const& sorted, double percent);

/// Fills in what the records of the requests tell: counts, times and waits. `over_ns` is when the row ended,
/// `deadline_ns` when it had to.
///
/// A request that never got the lock counts with the time that it had waited when the row was over. Without that a
/// row that served a lucky few and was cut off would look quick.
void summarise_requests(row_result& result, std::span<request_record const> records, std::int64_t go_ns,
                        std::int64_t over_ns, std::int64_t deadline_ns);

/// With this many digits after the point.
std::string fixed(double value, int digits);
/// Two or three digits that count: 0.42, 4.2, 42, 421.
std::string short_number(double value);
/// A wait: with one digit after the point below 10 ms, in whole milliseconds from there.
std::string milliseconds_text(double ms);

/// Did this row do what it must? A recipe or no lock may oversell and be cut off; a latchkey row may not, nor may it
/// lose or hang anything. Errors that nobody planned are wrong in every row.
bool row_is_good(row_result const& result);

/// One line: what the rows show.
std::string conclusion(std::vector<row_result> const& results);

/// Lines of cells, set in columns as wide as their widest cell: the first and the last one to the left, the others to
/// the right. No spaces at line ends.
std::string format_table(std::vector<std::vector<std::string>> const& lines);

/// The table of the demo, with its headings.
std::string result_table(std::vector<row_result> const& results);

/// What a reader should know about the columns.
std::string table_notes(std::vector<row_result> const& results);

/// What ran and what came out, for programs.
std::string to_json(options const& wanted, std::vector<row_result> const& results);

}  // namespace demo
