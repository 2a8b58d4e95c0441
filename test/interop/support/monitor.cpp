#include <interop/support/monitor.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace latchkey::test {

namespace {

struct line {
  double at = 0;
  std::string source;  // an address, or "lua"
  std::vector<std::string> words;
};

int hex(char c) { return std::stoi(std::string(1, c), nullptr, 16); }

// 1763.25 [0 127.0.0.1:6379] "set" "a" "with \"quotes\" and \x00"
line parse(std::string const& text) {
  line result;
  auto const open = text.find('[');
  auto const close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) throw std::runtime_error("not of MONITOR: " + text);
  result.at = std::stod(text.substr(0, open));
  result.source = text.substr(text.find(' ', open) + 1, close - text.find(' ', open) - 1);
  bool inside = false;
  for (std::size_t i = close + 1; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '"') {
      inside = !inside;
      if (inside) result.words.emplace_back();
    } else if (inside && c == '\\') {
      char const next = text[++i];
      if (next == 'x') {
        result.words.back() += static_cast<char>(16 * hex(text[i + 1]) + hex(text[i + 2]));
        i += 2;
      } else {
        constexpr std::string_view letters = "nrtab";
        constexpr std::string_view meant = "\n\r\t\a\b";
        auto const at = letters.find(next);
        result.words.back() += at == std::string_view::npos ? next : meant[at];
      }
    } else if (inside) {
      result.words.back() += c;
    }
  }
  for (auto& c : result.words.at(0)) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// When a client stops listening is its own affair, and may be in the middle of somebody's next step.
constexpr std::array<std::string_view, 12> unobserved{"hello",  "auth",    "client",      "ping", "info",    "script",
                                                      "select", "monitor", "unsubscribe", "quit", "command", "cluster"};

bool all_of(std::string_view text, int (*is)(int)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [is](unsigned char c) { return is(c) != 0; });
}

// The id of a permit that nobody was told of stands there as 16 random bytes.
bool is_unknown_permit(std::string const& text) {
  return text.size() == 16 &&
         std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isprint(c) == 0; });
}

std::string symbolic(std::string const& word, double now, symbols const& table) {
  auto const text = with_symbols(word, table);
  if (is_unknown_permit(text)) return "<permit>";
  if (text.size() == 40 && all_of(text, std::isxdigit)) return "<script>";
  if (all_of(text, std::isdigit) && text.size() == 13) {
    return "<now+" + std::to_string(std::stoll(text) - static_cast<long long>(now * 1000)) + ">";
  }
  // Redisson's unlock latch: a random id, and a time to live that is random in part. latchkey's request for a permit
  // has a random id too.
  if (auto const at = text.rfind(':'); at != std::string::npos) {
    auto const last = std::string_view(text).substr(at + 1);
    bool const random = text.starts_with(unlock_latch) ||
                        (text.starts_with(own_keys) && last.size() == 32 && all_of(last, std::isxdigit));
    if (random) return text.substr(0, at) + ":<request>";
  }
  if (all_of(text, std::isdigit) && text.size() == 5 && text >= "16000" && text <= "20000") return "<latch-time>";
  std::string printable;
  for (char const c : text) printable += c == ' ' ? '_' : c;
  return printable.empty() ? "''" : printable;
}

}  // namespace

monitor::monitor(redis_server& server) : admin_(server.admin()), listening_(server.admin()) {
  listening_.ok("MONITOR");
}

std::vector<std::string> monitor::read(symbols const& table) {
  auto const mark = "mark-" + std::to_string(++last_mark_);
  admin_.ok("ECHO", mark);
  std::vector<std::string> result;
  bool ours = false;
  while (true) {
    auto const one = parse(listening_.receive().text);
    bool const by_script = one.source == "lua";
    if (!by_script) ours = one.source.starts_with("unix:");
    if (ours) {
      if (one.words.back() == mark) return result;
      continue;
    }
    if (std::find(unobserved.begin(), unobserved.end(), one.words[0]) != unobserved.end()) continue;
    std::string text = by_script ? " " : "";
    for (auto const& word : one.words) text += (text.empty() ? "" : " ") + symbolic(word, one.at, table);
    result.push_back(std::move(text));
  }
}

}  // namespace latchkey::test
