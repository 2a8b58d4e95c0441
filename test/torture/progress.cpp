#include <torture/progress.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace latchkey::torture {

namespace {

constexpr int width = 20;

template <class Numbers>
std::uint64_t sum(Numbers const& numbers) {
  std::uint64_t made = 0;
  for (auto const& one : numbers) made += one.load(std::memory_order_relaxed);
  return made;
}

}  // namespace

std::string in_words(std::map<std::string, int> const& counts) {
  std::vector<std::pair<int, std::string>> sorted;
  for (auto const& [name, count] : counts) sorted.emplace_back(-count, name);
  std::sort(sorted.begin(), sorted.end());
  std::string made;
  for (auto const& [count, name] : sorted) made += (made.empty() ? "" : ", ") + name + " " + std::to_string(-count);
  return made.empty() ? "none" : made;
}

progress::progress(double minutes) : terminal_(::isatty(1) == 1), length_(static_cast<std::int64_t>(minutes * 60e9)) {}

void progress::update(board const& shared, std::map<std::string, int> const& struck) {
  auto const at = now();
  if (at < next_) return;
  auto const passed = at - began_;
  next_ = at + (terminal_ ? second / 4 : passed < 60 * second ? 5 * second : 30 * second);
  int faults = 0;
  for (auto const& [name, count] : struck) faults += count;
  auto const sections = sum(shared.sections);
  auto const seconds = static_cast<unsigned>(passed / second);
  char text[160];
  std::snprintf(text, sizeof text, "[%2u:%02u] %llu sections, %.0f per second; %d faults; %llu holds lost",
                seconds / 60, seconds % 60, static_cast<unsigned long long>(sections),
                static_cast<double>(sections) * 1e9 / static_cast<double>(std::max<std::int64_t>(passed, second)),
                faults, static_cast<unsigned long long>(sum(shared.lost)));
  if (terminal_) {
    auto const full = static_cast<std::size_t>(width * std::min(passed, length_) / std::max<std::int64_t>(length_, 1));
    std::printf("\r\x1b[K[%s%s] %s", std::string(full, '#').c_str(), std::string(width - full, '.').c_str(), text);
  } else {
    std::printf("%s\n", text);
  }
  std::fflush(stdout);
}

void progress::end() const {
  if (terminal_) std::printf("\r\x1b[K");
}

}  // namespace latchkey::torture
