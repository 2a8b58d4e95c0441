#include <machine/own_channel.hpp>
#include <machine/record.hpp>

#include <algorithm>
#include <cassert>

namespace latchkey::detail {

namespace {

// AddressSanitizer sees a use after the end only in memory that was really freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_memory = false;
#elif defined(__has_feature)
constexpr bool keeps_memory = !__has_feature(address_sanitizer);
#else
constexpr bool keeps_memory = true;
#endif

constexpr std::size_t most_spare = 64;

}  // namespace

record::record(name_machine& name, std::uint64_t number) : of(name), owner(number) {
  for (unsigned char mode = 0; mode < most_modes; ++mode) {
    sides[mode].of = this;
    sides[mode].mode = mode;
  }
}

record::~record() = default;

void record::renew(std::unique_ptr<record>& one, name_machine& name, std::uint64_t number) {
  auto holds = std::move(one->holds);
  auto spare = std::move(one->spare_);
  std::destroy_at(one.get());
  std::construct_at(one.get(), name, number);
  one->holds = std::move(holds);
  one->spare_ = std::move(spare);
}

hold& record::add(hold made) {
  if (spare_) {
    std::destroy_at(spare_.get());
    std::construct_at(spare_.get(), std::move(made));
  } else {
    spare_ = std::make_unique<hold>(std::move(made));
  }
  auto& kept = *holds.emplace_back(std::move(spare_));
  kept.of = this;
  kept.expiry.what = timer_node::type::hold;
  kept.expiry.of = &kept;
  ++live_[kept.mode];
  return kept;
}

void record::end(hold& ended) {
  assert(!ended.is_linked() && !ended.expiry.is_linked());
  if (!ended.lost) --live_[ended.mode];
  auto const found = std::find_if(holds.begin(), holds.end(), [&](auto const& one) { return one.get() == &ended; });
  spare_ = keeps_memory ? std::move(*found) : nullptr;
  holds.erase(found);
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

record& spare_storage::make(record_map& all, name_machine& name, std::uint64_t owner) {
  if (nodes_.empty()) return *all.emplace(owner, std::make_unique<record>(name, owner)).first->second;
  auto node = std::move(nodes_.back());
  nodes_.pop_back();
  node.key() = owner;
  record::renew(node.mapped(), name, owner);
  return *all.insert(std::move(node)).position->second;
}

void spare_storage::take(record_map& all, record& ended) {
  assert(ended.idle() && !ended.is_linked() && !ended.sides[0].is_linked() && !ended.sides[1].is_linked());
  ended.own.reset();  // gives up its channel
  if (ended.holds.capacity() > most_spare) ended.holds.shrink_to_fit();
  auto node = all.extract(ended.owner);
  if (keeps_memory && nodes_.size() < most_spare) nodes_.push_back(std::move(node));
}

}  // namespace latchkey::detail
