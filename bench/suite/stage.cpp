#include <suite/stage.hpp>

#include <atomic>
#include <cstdio>
#include <ctime>

namespace bench {
namespace {

double since_start() {
  static timespec const start = [] {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
  }();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - start.tv_sec) + static_cast<double>(now.tv_nsec - start.tv_nsec) * 1e-9;
}

void print(std::string const& text) {
  int const seconds = static_cast<int>(since_start());
  std::printf("[%2d:%02d] %s\n", seconds / 60, seconds % 60, text.c_str());
  std::fflush(stdout);
}

}  // namespace

stage::stage(std::string group, int rounds, results& out)
    : group_(std::move(group)), rounds_(rounds), out_(out), server_({.tcp = true}) {
  since_start();
}

void stage::say(std::string const& text) const { print(group_ + ": " + text); }

void stage::add(row one) {
  one.group = group_;
  print("    " + text_of(one));
  out_.rows.push_back(std::move(one));
}

void stage::draw(std::string plot, std::string line, std::vector<std::pair<double, double>> points) {
  out_.curves.push_back({std::move(plot), std::move(line), std::move(points)});
}

std::string new_name(std::string_view group) {
  static std::atomic<int> count{0};
  return "bench:" + std::string(group) + ":" + std::to_string(++count);
}

latchkey::config quiet_config() {
  latchkey::config settings;
  settings.ping_interval = latchkey::milliseconds(0);
  return settings;
}

}  // namespace bench
