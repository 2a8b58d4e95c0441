#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// One line of the table: a figure beside a reference of the same run, and what is asked of the two.
struct row {
  std::string group{};
  std::string name{};
  std::string unit{};
  std::optional<double> figure{};     // none: it could not be measured here, see `missing`
  std::string against{};              // what the reference is; empty: the figure stands alone
  std::optional<double> reference{};  // of the same unit
  std::optional<double> ratio{};      // left out: figure / reference
  std::optional<double> most{};       // of the ratio, of the figure where nothing is beside it
  std::optional<double> least{};
  std::string missing{};  // why there is no verdict
  std::string note{};     // in what state the machine was, and what else must be known

  std::optional<double> measured() const;
  // Kept, MISSED, missing, or nothing where nothing is asked.
  std::string verdict() const;
};

// One line of a plot.
struct curve {
  std::string plot;
  std::string line;
  std::vector<std::pair<double, double>> points;
};

struct results {
  std::string machine;
  int rounds = 0;
  std::vector<row> rows;
  std::vector<curve> curves;

  std::string to_json() const;
};

std::string text_of(row const& one);

}  // namespace bench
