// The text formats of metrics, for a snapshot that is made up and for a real one.
#include <latchkey/prometheus.hpp>
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

stats made_up() {
  stats shown;
  shown.nodes = {{.address = "10.0.0.1:6379", .epoch = 3, .connected = true, .links = 3, .held = 2},
                 {.address = "a\"\\b"}};
  shown.kinds.resize(2);
  shown.kinds[0].kind = "lock";
  shown.kinds[0].acquired = 5;
  shown.kinds[0].busy = 2;
  shown.kinds[1].kind = "fair_lock";
  shown.kinds[1].held = 1;
  shown.bytes_sent = 77;
  shown.kills = 3;
  shown.orphans = 5;
  shown.unanswered = 6;
  shown.switches = 7;
  shown.waits_met = 8;
  shown.waits_failed = 9;
  shown.connected = true;
  shown.wait_time.buckets[4] = 3;
  shown.wait_time.buckets[5] = 1;
  shown.wait_time.buckets[26] = 1;
  shown.wait_time.buckets[31] = 2;
  shown.wait_time.sum = 1'234'500'000;
  return shown;
}

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

// The lines that begin so, in their order.
std::vector<std::string> with(std::string const& text, std::string const& begin) {
  std::vector<std::string> found;
  for (auto const& line : lines_of(text))
    if (line.starts_with(begin)) found.push_back(line);
  return found;
}

using list = std::vector<std::string>;

// What promtool says of a text, if it is there.
bool promtool_accepts(std::string const& text) {
  auto* const pipe =
      ::popen("if command -v promtool >/dev/null; then promtool check metrics; else cat >/dev/null; fi", "w");
  REQUIRE(pipe);
  CHECK(std::fwrite(text.data(), 1, text.size(), pipe) == text.size());
  return ::pclose(pipe) == 0;
}

}  // namespace

TEST_CASE("M1: counters and gauges have a kind where kinds differ", "[outside][metrics]") {
  auto const text = to_prometheus(made_up());
  CHECK(with(text, "latchkey_acquired_total") ==
        list{"latchkey_acquired_total{kind=\"lock\"} 5", "latchkey_acquired_total{kind=\"fair_lock\"} 0"});
  CHECK(with(text, "latchkey_busy_total{kind=\"lock\"}") == list{"latchkey_busy_total{kind=\"lock\"} 2"});
  CHECK(with(text, "latchkey_held") == list{"latchkey_held{kind=\"lock\"} 0", "latchkey_held{kind=\"fair_lock\"} 1"});
  CHECK(with(text, "latchkey_sent_bytes") == list{"latchkey_sent_bytes_total 77"});
  CHECK(with(text, "latchkey_connection_kills") == list{"latchkey_connection_kills_total 3"});
  CHECK(with(text, "latchkey_orphans") == list{"latchkey_orphans_total 5"});
  CHECK(with(text, "latchkey_unanswered") == list{"latchkey_unanswered_requests_total 6"});
  CHECK(with(text, "latchkey_switches") == list{"latchkey_switches_total 7"});
  CHECK(with(text, "latchkey_replica_waits") ==
        list{"latchkey_replica_waits_met_total 8", "latchkey_replica_waits_failed_total 9"});
  CHECK(with(text, "latchkey_connected") == list{"latchkey_connected 1"});
  CHECK(with(text, "latchkey_server_connected") == list{"latchkey_server_connected{server=\"10.0.0.1:6379\"} 1",
                                                        R"(latchkey_server_connected{server="a\"\\b"} 0)"});
  CHECK(with(text, "latchkey_server_epoch").front() == "latchkey_server_epoch{server=\"10.0.0.1:6379\"} 3");
  CHECK(with(text, "latchkey_server_links").front() == "latchkey_server_links{server=\"10.0.0.1:6379\"} 3");
  CHECK(with(text, "latchkey_server_held").front() == "latchkey_server_held{server=\"10.0.0.1:6379\"} 2");
  CHECK(with(text, "# TYPE latchkey_acquired") == list{"# TYPE latchkey_acquired_total counter"});
  CHECK(with(text, "latchkey_build_info{version=\"" LATCHKEY_VERSION "\",boost=\"1.").size() == 1);
  CHECK(text.back() == '\n');
  CHECK(text.find("# EOF") == text.npos);
}

TEST_CASE("M1: a histogram has 13 cumulative buckets, a sum in seconds and a count", "[outside][metrics]") {
  CHECK(with(to_prometheus(made_up()), "latchkey_wait_seconds") ==
        list{"latchkey_wait_seconds_bucket{le=\"0.000016\"} 3", "latchkey_wait_seconds_bucket{le=\"0.000064\"} 4",
             "latchkey_wait_seconds_bucket{le=\"0.000256\"} 4", "latchkey_wait_seconds_bucket{le=\"0.001024\"} 4",
             "latchkey_wait_seconds_bucket{le=\"0.004096\"} 4", "latchkey_wait_seconds_bucket{le=\"0.016384\"} 4",
             "latchkey_wait_seconds_bucket{le=\"0.065536\"} 4", "latchkey_wait_seconds_bucket{le=\"0.262144\"} 4",
             "latchkey_wait_seconds_bucket{le=\"1.048576\"} 4", "latchkey_wait_seconds_bucket{le=\"4.194304\"} 4",
             "latchkey_wait_seconds_bucket{le=\"16.777216\"} 4", "latchkey_wait_seconds_bucket{le=\"67.108864\"} 5",
             "latchkey_wait_seconds_bucket{le=\"+Inf\"} 7", "latchkey_wait_seconds_sum 1234.5",
             "latchkey_wait_seconds_count 7"});
}

TEST_CASE("M1: OpenMetrics names families without their ending, has units and an end", "[outside][metrics]") {
  auto const text = to_openmetrics(made_up(), "zone=\"a\"");
  CHECK(with(text, "# TYPE latchkey_acquired") == list{"# TYPE latchkey_acquired counter"});
  CHECK(with(text, "# UNIT") == list{"# UNIT latchkey_sent_bytes bytes", "# UNIT latchkey_received_bytes bytes",
                                     "# UNIT latchkey_wait_seconds seconds", "# UNIT latchkey_hold_seconds seconds"});
  CHECK(with(text, "latchkey_sent_bytes") == list{"latchkey_sent_bytes_total{zone=\"a\"} 77"});
  CHECK(with(text, "# TYPE latchkey_build") == list{"# TYPE latchkey_build info"});
  CHECK(with(text, "latchkey_acquired_total").front() == "latchkey_acquired_total{zone=\"a\",kind=\"lock\"} 5");
  CHECK(lines_of(text).back() == "# EOF");
}

TEST_CASE("labels that no sample can have are refused", "[outside][metrics]") {
  for (char const* const labels :
       {"zone", "zone=a", "zone=\"a", "zone=\"a\",", "=\"a\"", "1=\"a\"", "kind=\"a\"", "server=\"a\"", "le=\"1\"",
        "a=\"\n\"", "a=\"1\",a=\"2\"", "a=\"\\x\"", "a=\"1\"} 1", "a=\"1\" b=\"2\"", "a=\"\\", "__a=\"1\""}) {
    INFO(labels);
    CHECK(test::error_of([&] { return to_prometheus({}, labels); }) == errc::bad_argument);
    CHECK(test::error_of([&] { return to_openmetrics({}, labels); }) == errc::bad_argument);
  }
  auto const escaped = to_prometheus({}, R"(a="q\"b\\n\n",_b1="{}")");
  CHECK(with(escaped, "latchkey_connected") == list{R"(latchkey_connected{a="q\"b\\n\n",_b1="{}"} 0)"});
}

TEST_CASE_METHOD(one_lock, "M2: promtool accepts what a client shows", "[outside][metrics]") {
  static_cast<void>(lock.acquire());
  second.get_fair_lock(fresh_name()).lock();
  for (auto const* const each : {&ours, &second}) {
    REQUIRE(each->snapshot().nodes.size() == 1);
    CHECK(each->snapshot().nodes.front().connected);
    CHECK(promtool_accepts(to_prometheus(each->snapshot())));
    CHECK(promtool_accepts(to_prometheus(each->snapshot(), "client=\"a\",zone=\"b\"")));
  }
}
