#include <api/metric_writer.hpp>
#include <latchkey/prometheus.hpp>
#include <latchkey/version.hpp>

#include <boost/version.hpp>

#include <string>

namespace latchkey {

namespace {

using detail::metric;
using detail::metric_writer;

template <class Owner>
struct number {
  metric about;
  std::uint64_t Owner::*value;
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
    {{"given_back", "Grants that were awaited no more."}, &stats::given_back},
    {{"renewals", "Leases renewed by the watchdog."}, &stats::renewals},
    {{"reconnects", "Connections made after the first of their kind."}, &stats::reconnects},
    {{"connection_kills", "Discarded connections that were killed on the server."}, &stats::kills},
    {{"redirections", "Requests that a node of a cluster sent to another one."}, &stats::redirected},
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
    {{"server_in_flight", "Commands whose answers are awaited."}, &node_stats::in_flight},
    {{"server_kills_owed", "Connections given up that may still do something there."}, &node_stats::kills_owed},
    {{"server_epoch", "Of its mastership, as sentinels or nodes say."}, &node_stats::epoch},
};

template <class Owner>
struct answer {
  metric about;
  bool Owner::*value;
};

constexpr answer<node_stats> answers_by_server[] = {
    {{"server_connected", "1: its connection for commands is ready."}, &node_stats::connected},
};

constexpr answer<stats> answers[] = {
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
  for (auto const& one : counters_by_kind) {
    out.counter(one.about);
    for (auto const& kind : shown.kinds) out.count(kind.*one.value, "kind", kind.kind);
  }
  for (auto const& one : counters) {
    out.counter(one.about);
    out.count(shown.*one.value);
  }
  for (auto const& one : gauges_by_kind) {
    out.gauge(one.about);
    for (auto const& kind : shown.kinds) out.count(kind.*one.value, "kind", kind.kind);
  }
  for (auto const& one : gauges) {
    out.gauge(one.about);
    out.count(shown.*one.value);
  }
  for (auto const& one : gauges_by_server) {
    out.gauge(one.about);
    for (auto const& node : shown.nodes) out.count(node.*one.value, "server", node.address);
  }
  for (auto const& one : answers_by_server) {
    out.gauge(one.about);
    for (auto const& node : shown.nodes) out.count(node.*one.value ? 1 : 0, "server", node.address);
  }
  for (auto const& one : answers) {
    out.gauge(one.about);
    out.count(shown.*one.value ? 1 : 0);
  }
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
