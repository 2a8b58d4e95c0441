#include <latchkey/error.hpp>
#include <latchkey/prometheus.hpp>
#include <latchkey/stats.hpp>
#include <latchkey/version.hpp>

#include <boost/version.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::detail {

namespace {

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

// `name="value"`, of which quotes, backslashes and line ends are escaped; what is left after one of them.
class label_reader {
 public:
  explicit label_reader(std::string_view all) : rest_(all) {}

  void check() {
    if (rest_.empty()) return;
    for (;;) {
      name();
      expect('=');
      expect('"');
      value();
      if (rest_.empty()) return;
      expect(',');
    }
  }

 private:
  [[noreturn]] static void refuse(char const* why) { throw lock_error(errc::bad_argument, why); }

  void expect(char next) {
    if (rest_.empty() || rest_.front() != next) refuse("labels are to be written as name=\"value\",name=\"value\"");
    rest_.remove_prefix(1);
  }

  void name() {
    auto const letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    auto const end = std::find_if_not(rest_.begin(), rest_.end(), letter);
    std::string_view const name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (name.empty() || (name.front() >= '0' && name.front() <= '9') || name.starts_with("__"))
      refuse("a label's name has letters, digits and single underscores");
    if (!seen_.insert(name).second) refuse("a label is there twice, or is one of the library's own");
    rest_.remove_prefix(name.size());
  }

  void value() {
    for (;;) {
      auto const end = rest_.find_first_of("\"\\\n");
      if (end == rest_.npos || rest_[end] == '\n') refuse("a label's value has no end");
      bool const escaped = rest_[end] == '\\';
      if (escaped && (end + 1 == rest_.size() || std::string_view("\\\"n").find(rest_[end + 1]) == rest_.npos))
        refuse("in a label's value a backslash stands before a backslash, a quote or an n");
      rest_.remove_prefix(end + (escaped ? 2 : 1));
      if (!escaped) return;
    }
  }

  std::string_view rest_;
  std::set<std::string_view> seen_{"kind", "server", "le", "version", "boost"};
};

// Whole microseconds as seconds, exactly.
std::string seconds(std::uint64_t microseconds) {
  std::string made = std::to_string(microseconds / 1'000'000);
  std::string const rest = std::to_string(microseconds % 1'000'000);
  if (rest == "0") return made + ".0";
  made += '.' + std::string(6 - rest.size(), '0') + rest;
  made.erase(made.find_last_not_of('0') + 1);
  return made;
}

// As the value of a label.
std::string escaped(std::string_view text) {
  std::string made;
  for (char const c : text) {
    if (c == '\\' || c == '"' || c == '\n') made += '\\';
    made += c == '\n' ? 'n' : c;
  }
  return made;
}

}  // namespace

metric_writer::metric_writer(format as, std::string_view labels) : as_(as), labels_(labels) {
  label_reader(labels_).check();
}

void metric_writer::head(std::string_view family, metric const& about, std::string_view type) {
  auto const line = [&](std::string_view what, std::string_view words) {
    for (std::string_view const part : {std::string_view("# "), what, std::string_view(" "), family,
                                        std::string_view(" "), words, std::string_view("\n")})
      made_ += part;
  };
  line("HELP", about.help);
  line("TYPE", type);
  if (as_ == format::openmetrics && !about.unit.empty()) line("UNIT", about.unit);
}

void metric_writer::counter(metric const& about) {
  std::string const family = "latchkey_" + std::string(about.name);
  name_ = family + "_total";
  head(as_ == format::openmetrics ? family : name_, about, "counter");
}

void metric_writer::gauge(metric const& about) {
  name_ = "latchkey_" + std::string(about.name);
  head(name_, about, "gauge");
}

void metric_writer::count(std::uint64_t value, std::string_view label, std::string_view of) {
  std::string own(label);
  if (!label.empty()) own += "=\"" + escaped(of) + '"';
  sample({}, own, std::to_string(value));
}

void metric_writer::times(metric const& about, histogram const& times) {
  name_ = "latchkey_" + std::string(about.name);
  head(name_, about, "histogram");
  constexpr std::size_t first = 4, last = 26;  // powers of two of a microsecond
  std::uint64_t so_far = 0;
  for (std::size_t power = 0; power < histogram::size; ++power) {
    so_far += times.buckets[power];
    if (power < first || power > last || power % 2 != 0) continue;
    sample("_bucket", "le=\"" + seconds(std::uint64_t{1} << power) + '"', std::to_string(so_far));
  }
  sample("_bucket", "le=\"+Inf\"", std::to_string(so_far));
  sample("_sum", {}, seconds(times.sum));
  sample("_count", {}, std::to_string(so_far));
}

void metric_writer::info(metric const& about, std::string_view version, std::string_view boost) {
  std::string const family = "latchkey_" + std::string(about.name);
  name_ = family + "_info";
  bool const has_type = as_ == format::openmetrics;
  head(has_type ? family : name_, about, has_type ? "info" : "gauge");
  sample({}, "version=\"" + std::string(version) + "\",boost=\"" + std::string(boost) + '"', "1");
}

void metric_writer::sample(std::string_view suffix, std::string_view own_labels, std::string_view value) {
  made_ += name_;
  made_ += suffix;
  if (!own_labels.empty() || !labels_.empty()) {
    made_ += '{';
    made_ += labels_;
    if (!own_labels.empty() && !labels_.empty()) made_ += ',';
    made_ += own_labels;
    made_ += '}';
  }
  made_ += ' ';
  made_ += value;
  made_ += '\n';
}

std::string metric_writer::text() && {
  if (as_ == format::openmetrics) made_ += "# EOF\n";
  return std::move(made_);
}

}  // namespace latchkey::detail

namespace latchkey {

namespace {

using detail::metric;
using detail::metric_writer;

template <class Owner, class Value = std::uint64_t>
struct number {
  metric about;
  Value Owner::*value;
};

constexpr number<kind_stats> counters_by_kind[] = {
    {{"acquired", "Holds that began."}, &kind_stats::acquired},
    {{"contended", "Holds that began after waiting."}, &kind_stats::contended},
    {{"handed_off", "Holds that were passed on inside the client."}, &kind_stats::handed_off},
    {{"released", "Holds that ended by release."}, &kind_stats::released},
    {{"lost", "Holds that ended otherwise."}, &kind_stats::lost},
    {{"busy", "Calls that ended because somebody else had the lock."}, &kind_stats::busy},
    {{"timeouts", "Calls that ended without an answer."}, &kind_stats::timeouts},
    {{"errors", "Calls that ended with another error."}, &kind_stats::errors},
};

constexpr number<kind_stats> gauges_by_kind[] = {
    {{"held", "Live holds."}, &kind_stats::held},
    {{"waiting", "Callers that wait."}, &kind_stats::waiting},
};

constexpr number<stats> counters[] = {
    {{"given_back", "What was on the server without a holder here, and was removed."}, &stats::given_back},
    {{"renewals", "Leases renewed by the watchdog."}, &stats::renewals},
    {{"reconnects", "Connections made after the first of their kind."}, &stats::reconnects},
    {{"connection_kills", "Discarded connections that were killed on the server."}, &stats::kills},
    {{"orphans", "Connections given up with calls unanswered that may still run."}, &stats::orphans},
    {{"unanswered_requests", "Requests of owners on these."}, &stats::unanswered},
    {{"redirections", "Requests that a node of a cluster sent to another one."}, &stats::redirected},
    {{"switches", "Changes of the server that has all names, or some."}, &stats::switches},
    {{"replica_waits_met", "WAITs that as many replicas confirmed as were asked for."}, &stats::waits_met},
    {{"replica_waits_failed", "WAITs that fewer confirmed in time, or none."}, &stats::waits_failed},
    {{"commands", "Commands sent, scripts included."}, &stats::commands},
    {{"scripts", "Script calls sent."}, &stats::scripts},
    {{"messages", "Unlock messages received."}, &stats::messages},
    {{"sent_bytes", "Bytes sent.", "bytes"}, &stats::bytes_sent},
    {{"received_bytes", "Bytes received.", "bytes"}, &stats::bytes_received},
};

constexpr number<stats> gauges[] = {
    {{"subscriptions", "Channels listened to."}, &stats::subscriptions},
    {{"unsettled_requests", "Requests whose outcome is not known yet."}, &stats::in_doubt},
};

constexpr number<node_stats> gauges_by_server[] = {
    {{"server_held", "Live holds there."}, &node_stats::held},
    {{"server_links", "Connections to it that are ready."}, &node_stats::links},
    {{"server_in_flight", "Commands whose answers are awaited."}, &node_stats::in_flight},
    {{"server_kills_owed", "Connections given up that may still do something there."}, &node_stats::kills_owed},
    {{"server_epoch", "Of its mastership, as sentinels or nodes say."}, &node_stats::epoch},
};

constexpr number<node_stats, bool> answers_by_server[] = {
    {{"server_connected", "1: its connection for commands is ready."}, &node_stats::connected},
};

constexpr number<stats, bool> answers[] = {
    {{"connected", "1: the connection for commands is ready."}, &stats::connected},
    {{"fenced", "0: the server refuses CLIENT KILL, late copies of requests cannot be excluded."}, &stats::fenced},
    {{"messages_refused", "1: no messages are received, waiters poll."}, &stats::messages_refused},
};

std::string boost_version() {
  return std::to_string(BOOST_VERSION / 100'000) + '.' + std::to_string(BOOST_VERSION / 100 % 1'000) + '.' +
         std::to_string(BOOST_VERSION % 100);
}

std::string write(stats const& shown, std::string_view labels, metric_writer::format as) {
  metric_writer out(as, labels);
  auto const whole = [&](auto const& numbers, auto const head) {
    for (auto const& number : numbers) {
      (out.*head)(number.about);
      out.count(shown.*number.value);
    }
  };
  auto const parts = [&](auto const& numbers, auto const head, auto const& all, std::string_view label, auto const of) {
    for (auto const& number : numbers) {
      (out.*head)(number.about);
      for (auto const& one : all) out.count(one.*number.value, label, one.*of);
    }
  };
  parts(counters_by_kind, &metric_writer::counter, shown.kinds, "kind", &kind_stats::kind);
  whole(counters, &metric_writer::counter);
  parts(gauges_by_kind, &metric_writer::gauge, shown.kinds, "kind", &kind_stats::kind);
  whole(gauges, &metric_writer::gauge);
  parts(gauges_by_server, &metric_writer::gauge, shown.nodes, "server", &node_stats::address);
  parts(answers_by_server, &metric_writer::gauge, shown.nodes, "server", &node_stats::address);
  whole(answers, &metric_writer::gauge);
  out.times({"wait_seconds", "From the call to the grant.", "seconds"}, shown.wait_time);
  out.times({"hold_seconds", "From the grant to the release.", "seconds"}, shown.hold_time);
  out.info({"build", "What the client was built with."}, LATCHKEY_VERSION, boost_version());
  return std::move(out).text();
}

}  // namespace

std::string to_prometheus(stats const& shown, std::string_view labels) {
  return write(shown, labels, metric_writer::format::prometheus);
}

std::string to_openmetrics(stats const& shown, std::string_view labels) {
  return write(shown, labels, metric_writer::format::openmetrics);
}

}  // namespace latchkey
