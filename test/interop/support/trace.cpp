#include <interop/support/trace.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
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

namespace {

// For what Redisson sends after its call has returned.
constexpr auto straggling = 30ms;

std::string path_of(history const& what) {
  return LATCHKEY_INTEROP_SOURCE_DIR "/traces/" + what.kind + what.title + ".trace";
}

std::vector<std::string> lines_of(std::string const& text) { return parts_of(text, '\n'); }

// With the server before it, but for the first.
void add_lines(std::vector<std::string>& to, std::vector<std::string> const& lines, std::size_t server) {
  for (auto const& line : lines) to.push_back(server == 0 ? line : "@" + std::to_string(server) + " " + line);
}

// A number at the end of a word, as in 29998 or <now+300000>.
std::pair<std::string, long long> split(std::string const& word) {
  auto begin = word.size();
  if (word.ends_with('>')) --begin;
  auto const end = begin;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(word[begin - 1])) != 0) --begin;
  if (begin == end || end - begin > 15) return {word, 0};
  auto head = word.substr(0, begin);
  auto number = std::stoll(word.substr(begin, end - begin));
  if (head == "<now+-") {
    head = "<now+";
    number = -number;
  }
  return {head, number};
}

bool same_word(std::string const& one, std::string const& other) {
  if (one == other) return true;
  constexpr long long slow = 800;
  auto const [head, number] = split(one);
  auto const [other_head, other_number] = split(other);
  bool const times = head.starts_with("<now") || (number > 100 && other_number > 100);
  return times && head == other_head && std::llabs(number - other_number) <= slow;
}

bool same_line(std::string const& one, std::string const& other) {
  auto const words = parts_of(one, ' ');
  auto const other_words = parts_of(other, ' ');
  return std::equal(words.begin(), words.end(), other_words.begin(), other_words.end(), same_word);
}

}  // namespace

std::vector<traced_step> traced(history const& what, peer& a, peer& b, std::vector<redis_server*> const& servers) {
  stage the_stage(a, b, servers);
  // Once without listening: scripts are loaded then, and connections made.
  the_stage.play(what);
  std::vector<monitor> monitors;
  monitors.reserve(servers.size());
  for (auto* server : servers) monitors.emplace_back(*server);
  std::vector<traced_step> result(what.steps.size());
  stage second(a, b, servers);
  auto const after = second.play(what, [&](std::size_t step) {
    std::this_thread::sleep_for(straggling);
    for (std::size_t i = 0; i < monitors.size(); ++i) {
      add_lines(result[step].commands, monitors[i].read(second.table()), i);
    }
  });
  for (std::size_t step = 0; step < result.size(); ++step) {
    result[step].text = what.steps[step];
    result[step].answered = after[step + 1].answered;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      add_lines(result[step].state, lines_of(to_text(after[step + 1].states[i])), i);
    }
  }
  return result;
}

namespace {

// What a script did has its server and two spaces before it.
std::string script_prefix(std::string const& command) {
  std::size_t const server = command.starts_with('@') ? 3 : 0;
  return command.compare(server, 2, "  ") == 0 ? command.substr(0, server + 2) : std::string();
}

constexpr std::string_view bar = " | ";

std::vector<std::string> unpacked(std::string const& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + bar.size()) {
    end = text.find(bar, begin);
    parts.push_back(text.substr(begin, end == text.npos ? end : end - begin));
  }
  return parts;
}

// As much on a line as a screen shows.
class packed {
 public:
  explicit packed(std::ostream& to) : to_(to) {}
  ~packed() { flush(); }

  // On a line of its own, unless it has the same prefix as the line before it.
  void add(std::string const& mark, std::string const& prefix, std::string const& text) {
    if (!prefix.empty() && line_.starts_with(mark + prefix) && fits(text.size() - prefix.size())) {
      line_ += std::string(bar) + text.substr(prefix.size());
    } else {
      flush();
      line_ = mark + text;
    }
  }
  void append(std::string const& mark, std::string const& text) {
    if (fits(text.size())) {
      line_ += std::string(bar) + text;
    } else {
      add(mark, "", text);
    }
  }

 private:
  bool fits(std::size_t more) const { return line_.size() + bar.size() + more <= 120; }
  void flush() {
    if (!line_.empty()) to_ << line_ << "\n";
    line_.clear();
  }

  std::ostream& to_;
  std::string line_;
};

}  // namespace

void write_trace(history const& what, trace_file const& content) {
  std::ofstream file(path_of(what));
  for (std::size_t i = 0; i < what.steps.size(); ++i) {
    file << "# " << what.steps[i] << "\n";
    packed lines(file);
    for (auto const& one : content.redisson[i].commands) lines.add("R > ", script_prefix(one), one);
    lines.add("R : ", "", content.redisson[i].answered);
    for (auto const& one : content.redisson[i].state) lines.append("R = ", one);
    // The state and the answer are the same.
    for (auto const& one : content.ours[i].commands) lines.add("l > ", script_prefix(one), one);
  }
}

trace_file read_trace(history const& what) {
  std::ifstream file(path_of(what));
  if (!file) throw std::runtime_error("there is no " + path_of(what));
  trace_file result;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) {
      result.redisson.emplace_back();
      result.ours.emplace_back();
      result.redisson.back().text = result.ours.back().text = line.substr(2);
      if (result.ours.size() > what.steps.size() || line.substr(2) != what.steps[result.ours.size() - 1]) {
        throw std::runtime_error("the recording is of another history: " + line + "; run record-traces");
      }
      continue;
    }
    auto& step = line[0] == 'R' ? result.redisson.back() : result.ours.back();
    std::string const text = line.substr(4);
    auto parts = unpacked(text);
    if (line[2] == ':') {
      step.answered = parts.front();
      parts.erase(parts.begin());
    }
    for (auto const& part : parts) {
      if (line[2] != '>') step.state.push_back(part);
      if (line[2] == '>') step.commands.push_back(&part == &parts.front() ? part : script_prefix(text) + part);
    }
  }
  if (result.ours.size() != what.steps.size())
    throw std::runtime_error("the recording is too short; run record-traces");
  return result;
}

std::vector<std::string> messages_in(std::vector<std::string> const& commands) {
  std::vector<std::string> result;
  for (auto const& one : commands) {
    if (one.find("publish ") != std::string::npos) result.push_back(one);
  }
  return result;
}

std::vector<std::vector<std::string>> changes_in(std::vector<traced_step> const& steps) {
  constexpr std::array<std::string_view, 19> changing{
      "set",  "del",  "hset",    "hincrby", "hdel",   "pexpire", "persist", "publish",         "rpush", "lpop",
      "lrem", "zadd", "zincrby", "zrem",    "incrby", "decrby",  "incr",    "zremrangebyrank", "decr"};
  std::vector<std::vector<std::string>> blocks;
  for (auto const& step : steps) {
    if (by_chance(step.text)) continue;
    for (auto const& line : step.commands) {
      bool const by_script = line.starts_with("  ") || line.find(" lua ") != std::string::npos;
      if (!by_script || blocks.empty()) blocks.emplace_back();
      auto& block = blocks.back();
      // What a script does with a time that it read depends on whether a millisecond has passed: the state tells.
      bool const has_read = std::any_of(block.begin(), block.end(),
                                        [](auto const& earlier) { return earlier.find("pttl ") != earlier.npos; });
      if (!has_read || line.find("pexpire ") == line.npos) block.push_back(line);
    }
  }
  std::erase_if(blocks, [&](auto const& block) {
    return std::none_of(block.begin(), block.end(), [&](std::string const& line) {
      auto const words = parts_of(line, ' ');
      return std::any_of(words.begin(), words.end(), [&](std::string const& word) {
        return std::find(changing.begin(), changing.end(), word) != changing.end();
      });
    });
  });
  return blocks;
}

std::string missing(std::vector<std::vector<std::string>> const& wanted,
                    std::vector<std::vector<std::string>> const& among) {
  std::string result;
  for (auto const& one : wanted) {
    bool const found =
        std::any_of(among.begin(), among.end(), [&](auto const& other) { return difference(one, other).empty(); });
    if (found) continue;
    for (auto const& line : one) result += "\n  " + line;
  }
  return result;
}

std::string difference(std::vector<std::string> const& got, std::vector<std::string> const& wanted) {
  for (std::size_t i = 0; i < std::max(got.size(), wanted.size()); ++i) {
    auto const is = i < got.size() ? got[i] : "nothing";
    auto const was = i < wanted.size() ? wanted[i] : "nothing";
    if (!same_line(is, was)) return "\n  is:  " + is + "\n  was: " + was;
  }
  return {};
}

}  // namespace latchkey::test
