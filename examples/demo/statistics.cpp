#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace demo {
namespace {

double ms(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

}  // namespace

double percentile(std::vector<double> const& sorted, double percent) {
  if (sorted.empty()) return 0;
  auto const rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  auto const index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

void summarise_requests(row_result& result, std::span<request_record const> records, std::int64_t go_ns,
                        std::int64_t over_ns, std::int64_t deadline_ns) {
  std::vector<double> waits;
  waits.reserve(records.size());
  std::int64_t last_ns = go_ns;
  for (auto const& record : records) {
    switch (record.state.load(std::memory_order_acquire)) {
      case request_state::not_started: continue;
      case request_state::waiting: ++result.hung; [[fallthrough]];
      case request_state::gave_up:
        waits.push_back(ms(std::max(over_ns, record.ended_ns) - record.started_ns));
        continue;
      case request_state::serving: ++result.hung; break;
      case request_state::done:
        ++result.done;
        result.bought += record.bought;
        last_ns = std::max(last_ns, record.ended_ns);
        break;
      case request_state::lost: ++result.lost; break;
      case request_state::failed:
        ++result.failed;
        if (record.granted_ns == 0) {
          waits.push_back(ms(record.ended_ns - record.started_ns));
          continue;
        }
        break;
    }
    waits.push_back(ms(record.granted_ns - record.started_ns));
  }
  result.requested = static_cast<std::int64_t>(records.size());
  result.cut_off = !result.finished() && over_ns >= deadline_ns;
  result.seconds = ms((result.finished() ? last_ns : std::max(over_ns, last_ns)) - go_ns) / 1e3;

  std::sort(waits.begin(), waits.end());
  result.p50_ms = percentile(waits, 50);
  result.p90_ms = percentile(waits, 90);
  result.p99_ms = percentile(waits, 99);
  result.longest_ms = waits.empty() ? 0 : waits.back();
}

}  // namespace demo
