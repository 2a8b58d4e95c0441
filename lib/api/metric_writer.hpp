#pragma once

#include <latchkey/stats.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::detail {

struct metric {
  std::string_view name;  // without the prefix that all have, and without what the format adds
  std::string_view help;
  std::string_view unit{};
};

// Writes samples in the text formats of Prometheus and OpenMetrics. A metric is named once, and its samples follow.
class metric_writer {
 public:
  enum class format : unsigned char { prometheus, openmetrics };

  // \throws lock_error: the labels cannot be put to samples.
  metric_writer(format as, std::string_view labels);

  void counter(metric const& about);
  void gauge(metric const& about);
  // A sample of the latest of these; of several that this label tells apart.
  void count(std::uint64_t value, std::string_view label = {}, std::string_view of = {});
  void times(metric const& about, histogram const& times);
  void info(metric const& about, std::string_view version, std::string_view boost);

  std::string text() &&;

 private:
  void head(std::string_view family, metric const& about, std::string_view type);
  void sample(std::string_view suffix, std::string_view own_labels, std::string_view value);

  format as_;
  std::string labels_;
  std::string name_;  // of the metric that was named last
  std::string made_;
};

}  // namespace latchkey::detail
