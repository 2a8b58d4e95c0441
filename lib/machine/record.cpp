#include <machine/own_channel.hpp>
#include <machine/record.hpp>

#include <algorithm>

namespace latchkey::detail {

record::record(name_machine& name, std::uint64_t number) : of(name), owner(number) {
  for (unsigned char mode = 0; mode < most_modes; ++mode) {
    sides[mode].of = this;
    sides[mode].mode = mode;
  }
}

record::~record() = default;

hold& record::add(hold made) {
  auto& kept = *holds.emplace_back(std::make_unique<hold>(std::move(made)));
  kept.of = this;
  kept.expiry.what = timer_node::type::hold;
  kept.expiry.of = &kept;
  ++live_[kept.mode];
  return kept;
}

void record::end(hold& ended) {
  if (!ended.lost) --live_[ended.mode];
  std::erase_if(holds, [&](auto const& one) { return one.get() == &ended; });
}

void record::lose(hold& lost) {
  if (lost.lost) return;
  lost.lost = true;
  lost.link = nullptr;
  --live_[lost.mode];
}

hold* record::find(hold_id id) {
  auto found = std::find_if(holds.begin(), holds.end(), [&](auto const& one) { return one->id == id; });
  return found == holds.end() ? nullptr : found->get();
}

hold* record::latest(unsigned char mode) {
  auto found = std::find_if(holds.rbegin(), holds.rend(), [&](auto const& one) { return one->mode == mode; });
  return found == holds.rend() ? nullptr : found->get();
}

std::int64_t record::longest(unsigned char mode, instant now, milliseconds watchdog_time, hold const* except) const {
  milliseconds most{0};
  for (auto const& one : holds) {
    if (one->lost || one->mode != mode || one.get() == except) continue;
    auto needs = left(now, one->deadline);
    if (one->watchdog) needs = std::max(needs, watchdog_time);
    most = std::max(most, needs);
  }
  return most.count();
}

instant record::latest_deadline() const {
  instant last{};
  for (auto const& one : holds)
    if (!one->lost) last = std::max(last, one->deadline);
  return last;
}

}  // namespace latchkey::detail
