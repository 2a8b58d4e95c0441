#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/export.hpp>
#include <latchkey/stats.hpp>

#include <string>
#include <string_view>

namespace latchkey {

/// What `client::snapshot` shows, in the text format of Prometheus (version 0.0.4): for the answer to a scrape, with
/// the content type `text/plain; version=0.0.4`.
///
/// Names begin with `latchkey_`; times are seconds. What `kind_stats` has carries the label `kind`, what `node_stats`
/// has `server`, and nothing carries the name of a lock. The two histograms have a bucket for every second power of two
/// from 16 us to 67.1 s.
///
/// `labels` are put to every sample: `client="orders",zone="a"`, in the form of the format, values escaped. Two clients
/// of a process need labels of their own. No I/O; may be called on any thread.
/// \throws lock_error `bad_argument` if `labels` has not that form, or names `kind`, `server`, `le`, `version` or
/// `boost`.
LATCHKEY_EXPORT std::string to_prometheus(stats const& shown, std::string_view labels = {});

/// The same in the text format of OpenMetrics 1.0, with units and the mark of the end; the content type is
/// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
/// \throws lock_error as `to_prometheus`.
LATCHKEY_EXPORT std::string to_openmetrics(stats const& shown, std::string_view labels = {});

}  // namespace latchkey
