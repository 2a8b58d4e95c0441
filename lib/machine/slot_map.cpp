#include <machine/slot_map.hpp>

#include <algorithm>

namespace latchkey::detail {

node_address const* slot_map::at(std::uint16_t slot) const {
  return of_[slot] == nobody ? nullptr : &owners_[of_[slot]].at;
}

std::size_t slot_map::slots_of(node_address const& at) const {
  std::size_t made = 0;
  for (auto const& node : owners_)
    if (node.at == at) made += node.slots;
  return made;
}

std::uint64_t slot_map::epoch_of(node_address const& at) const {
  std::uint64_t last = 0;
  for (auto const& node : owners_)
    if (node.at == at) last = std::max(last, node.epoch);
  return last;
}

std::vector<slot_map::range> slot_map::uncovered() const {
  std::vector<range> made;
  for (std::uint16_t first = 0; first < slot_count;) {
    auto const last = end_of_run(first, slot_count - 1);
    if (of_[first] == nobody) made.emplace_back(first, last);
    first = static_cast<std::uint16_t>(last + 1);
  }
  return made;
}

// One that has lost all of its slots makes room.
std::uint16_t slot_map::index_of(owner const& one) {
  auto const same = std::find_if(owners_.begin(), owners_.end(), [&](auto const& node) {
    return static_cast<claimant const&>(node) == one && node.given_up == one.given_up;
  });
  if (same != owners_.end()) return static_cast<std::uint16_t>(same - owners_.begin());
  auto const unused = std::find_if(owners_.begin(), owners_.end(), [](auto const& node) { return node.slots == 0; });
  if (unused == owners_.end()) {
    owners_.push_back(one);
    return static_cast<std::uint16_t>(owners_.size() - 1);
  }
  *unused = one;
  return static_cast<std::uint16_t>(unused - owners_.begin());
}

void slot_map::give(std::uint16_t slot, std::uint16_t to) {
  if (of_[slot] != nobody) --owners_[of_[slot]].slots;
  of_[slot] = to;
  ++owners_[to].slots;
}

node_address const* slot_map::left_by(std::string const& id, node_address const& at, std::uint64_t epoch) const {
  auto const found = std::find_if(owners_.begin(), owners_.end(), [&](auto const& node) {
    return node.slots > 0 && node.id == id && !(node.at == at) && epoch >= node.epoch;
  });
  return found == owners_.end() ? nullptr : &found->at;
}

slot_map::change slot_map::readdress(node_address const& from, node_address const& to) {
  change made{from, to, 0, {}};
  for (int i = 0; i < slot_count; ++i) {
    auto const slot = static_cast<std::uint16_t>(i);
    if (of_[slot] == nobody || !(owners_[of_[slot]].at == from)) continue;
    made.epoch = owners_[of_[slot]].epoch;
    if (!made.slots.empty() && made.slots.back().second + 1 == i)
      made.slots.back().second = slot;
    else
      made.slots.emplace_back(slot, slot);
  }
  for (auto& node : owners_)
    if (node.at == from) node.at = to;
  for (auto& [slot, node] : claimed_)
    if (node.at == from) node.at = to;
  return made;
}

bool slot_map::claim(std::string const& id, node_address const& at, std::uint64_t epoch, std::span<range const> slots,
                     std::vector<change>& changes) {
  bool any = false;
  std::vector<change> made;  // by whom they were taken from
  for (auto [first, last] : slots)
    while (first <= last) {
      range const run{first, end_of_run(first, last)};
      any = claim(id, at, epoch, run, made) || any;
      if (run.second == last) break;
      first = static_cast<std::uint16_t>(run.second + 1);
    }
  changes.insert(changes.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  return any || slots.empty();
}

slot_map::rise slot_map::risen(std::string const& id, node_address const& at, std::uint64_t epoch,
                               std::span<range const> slots) const {
  bool any = false, all = true;
  for (auto const& [first, last] : slots)
    for (unsigned slot = first; slot <= last;) {
      owner const* const before = of_[slot] == nobody ? nullptr : &owners_[of_[slot]];
      bool const later = before && before->at == at && (before->given_up || before->epoch < epoch);
      bool const replaced = later && before->given_up && !before->id.empty();  // there, with nothing of what was done
      bool const had = replaced || (later && before->id == id);
      any = any || had || (later && before->id.empty());  // by the word of another node
      all = all && had;
      slot = end_of_run(static_cast<std::uint16_t>(slot), last) + 1u;
    }
  return !any ? rise::none : all ? rise::elected : rise::perhaps;
}

std::uint16_t slot_map::end_of_run(std::uint16_t first, std::uint16_t last) const {
  auto const begin = of_.begin() + first;
  auto const other = std::find_if(begin, of_.begin() + last + 1, [&](std::uint16_t of) { return of != *begin; });
  return static_cast<std::uint16_t>(other - of_.begin() - 1);
}

bool slot_map::owner::stands_against(node_address const& by, std::uint64_t claimed) const {
  return !given_up && (at == by ? claimed < epoch : claimed <= epoch);
}

// Also where it leads elsewhere by the word of another node.
slot_map::owner const* slot_map::claimant_of(std::uint16_t slot) const {
  if (of_[slot] == nobody) return nullptr;
  owner const& has = owners_[of_[slot]];
  if (!has.id.empty()) return &has;
  auto const claim = claimed_.find(slot);
  return claim == claimed_.end() ? nullptr : &claim->second;
}

std::vector<slot_map::standing> slot_map::standing_against(std::string const& id, node_address const& at,
                                                           std::uint64_t epoch, std::span<range const> slots) const {
  std::vector<standing> made;
  for (auto const& [first, last] : slots)
    for (unsigned i = first; i <= last; ++i) {
      auto const slot = static_cast<std::uint16_t>(i);
      owner const* const one = claimant_of(slot);
      if (!one || one->id == id || !owners_[of_[slot]].stands_against(at, epoch)) continue;
      auto found = std::find_if(made.begin(), made.end(), [&](auto const& known) { return one->is(known.of); });
      if (found == made.end()) found = made.insert(made.end(), {*one, {}});
      if (!found->slots.empty() && found->slots.back().second + 1 == slot)
        found->slots.back().second = slot;
      else
        found->slots.emplace_back(slot, slot);
    }
  return made;
}

void slot_map::give_up(claimant const& whom) {
  for (auto& [slot, node] : claimed_) {
    if (!node.is(whom)) continue;
    node.given_up = true;
    node.epoch = 0;
    give(slot, index_of({{{}, owners_[of_[slot]].at, 0}, true}));
  }
  for (auto& node : owners_) {
    if (!node.is(whom)) continue;
    node.given_up = true;
    node.epoch = 0;
  }
}

// Of slots that all have the same owner, or none.
bool slot_map::claim(std::string const& id, node_address const& at, std::uint64_t epoch, range const& run,
                     std::vector<change>& made) {
  owner const before = of_[run.first] == nobody ? owner{} : owners_[of_[run.first]];
  bool const same = before.at == at;
  if (of_[run.first] != nobody && before.stands_against(at, epoch)) return false;
  if (same && epoch == before.epoch && !before.given_up) return true;
  std::uint16_t const to = index_of({{id, at, epoch}});
  auto const first_claim = claimed_.find(run.first);
  node_address const from = same && first_claim != claimed_.end() ? first_claim->second.at : before.at;
  for (unsigned slot = run.first; slot <= run.second; ++slot) give(static_cast<std::uint16_t>(slot), to);
  claimed_.erase(claimed_.lower_bound(run.first), claimed_.upper_bound(run.second));
  if (from == at) return true;
  auto found = std::find_if(made.begin(), made.end(), [&](auto const& told) { return told.from == from; });
  if (found == made.end()) found = made.insert(made.end(), {from, at, epoch, {}});
  if (!found->slots.empty() && found->slots.back().second + 1 == run.first)
    found->slots.back().second = run.second;
  else
    found->slots.push_back(run);
  return true;
}

bool slot_map::moved(std::uint16_t slot, node_address const& to) {
  bool const any = of_[slot] != nobody;
  owner const before = any ? owners_[of_[slot]] : owner{};
  if (!before.id.empty()) claimed_.emplace(slot, before);
  auto const claim = claimed_.find(slot);
  bool const back = claim != claimed_.end() && claim->second.at == to;
  give(slot, index_of({{back ? claim->second.id : std::string(), to, before.epoch}, before.given_up}));
  if (back) claimed_.erase(claim);
  return any && before.id.empty() && !back;
}

}  // namespace latchkey::detail
