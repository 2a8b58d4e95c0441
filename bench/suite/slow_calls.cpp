#include <suite/slow_calls.hpp>

#include <algorithm>

namespace bench {

slow_calls::slow_calls(latchkey::test::raw_redis& admin) : admin_(admin) { listen_above(0); }

slow_calls::~slow_calls() {
  try {
    listen_above(-1);  // nothing is listed any more
  } catch (...) {
  }
}

void slow_calls::listen_above(double us) {
  admin_.ok("CONFIG", "SET", "slowlog-log-slower-than", static_cast<long>(us));
  admin_.ok("SLOWLOG", "RESET");
}

void slow_calls::look() {
  double const before = longest_;
  for (auto const& entry : admin_.ok("SLOWLOG", "GET", 50).elements) {
    auto const& words = entry.elements.at(3).elements;
    if (!words.empty() && words[0].text.starts_with("EVAL"))
      longest_ = std::max(longest_, static_cast<double>(entry.elements.at(2).integer));
  }
  if (longest_ > before) listen_above(longest_);
}

double script_us(latchkey::test::raw_redis& admin) {
  auto const text = admin.text("INFO", "commandstats");
  auto const line = text.find("cmdstat_evalsha:");
  auto const at = line == text.npos ? line : text.find("usec=", line);
  return at == text.npos ? 0 : std::stod(text.substr(at + 5));
}

}  // namespace bench
