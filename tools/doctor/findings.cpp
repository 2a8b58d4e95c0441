#include <boost/json.hpp>

#include <base/json.hpp>
#include <base/say.hpp>
#include <cstdio>
#include <doctor/findings.hpp>

namespace latchkey::tool {

void findings::add(verdict what, std::string_view id, std::string_view words, std::string_view remedy) {
  static constexpr char const* names[] = {"ok", "warn", "FAIL", "skip"};
  auto const* const name = names[static_cast<int>(what)];
  bad_ = bad_ || what == verdict::fail || (strict_ && what == verdict::warn);
  auto const said = without_passwords(words);
  if (json_) {
    boost::json::object made{{"schema", 1}, {"verdict", name}, {"id", id}, {"text", said}};
    if (!node_.empty()) made["node"] = node_;
    made["remedy"] = remedy.empty() ? boost::json::value(nullptr) : boost::json::value(remedy);
    std::puts(json_text(made).c_str());
  } else {
    auto text = std::string(name) + ' ' + std::string(id) + (node_.empty() ? "" : " at " + node_) + ": " + said;
    if (!remedy.empty()) (text += "; ") += remedy;
    std::puts(folded(std::move(text)).c_str());
  }
  std::fflush(stdout);
}

}  // namespace latchkey::tool
