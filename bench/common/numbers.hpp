#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

inline double quantile(std::vector<double> values, double part) {
  auto const at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline double median(std::vector<double> const& values) { return quantile(values, 0.5); }

// Of each of the one to its neighbour of the other.
inline std::vector<double> ratios(std::vector<double> const& a, std::vector<double> const& b) {
  std::vector<double> found;
  for (std::size_t i = 0; i < a.size(); ++i) found.push_back(a[i] / b[i]);
  return found;
}

// 1: all have the same; 1 / n: one has everything.
inline double jain_index(std::vector<double> const& shares) {
  double sum = 0, squares = 0;
  for (double const one : shares) {
    sum += one;
    squares += one * one;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 0;
}

}  // namespace bench
