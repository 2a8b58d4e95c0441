#include <torture/nemesis.hpp>
#include <torture/nemesis_list.hpp>

#include <algorithm>
#include <cstring>

namespace latchkey::torture {

namespace {

constexpr std::int64_t storm = 8 * second;  // then all is well for a while
constexpr std::int64_t calm = 2 * second;

}  // namespace

std::vector<std::string> const& nemesis_names() {
  static auto const names = [] {
    std::vector<std::string> made;
    for (auto const& one : all_nemeses()) made.push_back(one.name);
    return made;
  }();
  return names;
}

std::string nemesis_about(std::string const& name) {
  for (auto const& one : all_nemeses())
    if (one.name == name) return one.about;
  return {};
}

nemeses::nemeses(stage& on, std::vector<std::string> const& which, std::uint64_t seed)
    : on_(on), dice_(simulation::mix(seed, 77)), began_(now()), next_(began_ + second / 2) {
  auto const& names = nemesis_names();
  for (auto const& name : which) {
    which_.push_back(static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    struck_[name] = 0;
  }
}

std::int64_t nemeses::next_strike() {
  auto const at = now() + dice_.between(10 * ms, 250 * ms);
  auto const into = (at - began_) % (storm + calm);
  return into < storm ? at : at + (storm + calm - into);
}

void nemeses::step() {
  auto const at = now();
  for (auto one = wounds_.begin(); one != wounds_.end();) {
    if (one->end > at || !one->heal()) {
      ++one;
      continue;
    }
    record line;
    line.what = what::fault;
    line.code = one->which;
    line.a = one->begin;
    line.b = now();
    line.c = one->whom;
    on_.log().write(line);
    one = wounds_.erase(one);
  }
  if (which_.empty() || at < next_) return;
  strike();
  next_ = next_strike();
}

void nemeses::strike() {
  auto const which = which_[dice_.below(which_.size())];
  auto const& one = all_nemeses()[which];
  auto const begin = now();
  auto made = one.strike(on_, dice_);
  if (!made) return;  // not possible now
  ++struck_[one.name];
  wounds_.push_back({which, begin, begin + made->length, made->whom, std::move(made->heal)});
}

void nemeses::heal() {
  which_.clear();
  for (auto& one : wounds_) one.end = 0;
  while (!wounds_.empty()) step();
}

}  // namespace latchkey::torture
