#include "progress.hpp"

#include "format.hpp"

#include <algorithm>
#include <iostream>

namespace demo {
namespace {

constexpr auto between_lines = std::chrono::seconds(5);
constexpr std::size_t label_width = 24;
constexpr char const* clear_line = "\r\x1b[K";

std::string outcome(row_result const& result) {
  auto text = std::to_string(result.done) + " requests in " + fixed(result.seconds, 1) + " s";
  if (result.cut_off) text += ", cut off";
  if (!result.error.empty()) text += ", " + result.error;
  if (result.oversold() != 0) text += ", " + std::to_string(result.oversold()) + " oversold";
  return text;
}

}  // namespace

std::string bar(std::int64_t done, std::int64_t all, std::size_t width) {
  auto const part =
      all > 0 ? static_cast<double>(std::clamp<std::int64_t>(done, 0, all)) / static_cast<double>(all) : 0;
  auto const filled = static_cast<std::size_t>(part * static_cast<double>(width));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

std::string progress::head() const {
  auto label = label_;
  label.resize(std::max(label.size(), label_width), ' ');
  return "[" + std::to_string(number_) + "/" + std::to_string(rows_) + "] " + label + " ";
}

void progress::begin(row const& shown) {
  ++number_;
  label_ = shown.label;
  begun_ = clock::now();
  next_line_ = begun_ + between_lines;
}

void progress::update(std::int64_t done, std::int64_t all) {
  auto const now = clock::now();
  auto const passed = fixed(std::chrono::duration<double>(now - begun_).count(), 1) + " s";
  auto const count = std::to_string(done) + "/" + std::to_string(all);
  if (terminal_) {
    std::cout << clear_line << head() << bar(done, all, 20) << " " << count << "  " << passed << std::flush;
  } else if (now >= next_line_) {
    next_line_ += between_lines;
    std::cout << head() << count << " after " << passed << std::endl;
  }
}

void progress::end(row_result const& result) {
  clear();
  std::cout << head() << outcome(result) << std::endl;
}

void progress::clear() {
  if (terminal_) std::cout << clear_line << std::flush;
}

}  // namespace demo
