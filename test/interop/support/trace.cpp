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

void write_trace(history const& what, trace_file const& content) {
  std::ofstream file(path_of(what));
  for (std::size_t i = 0; i < what.steps.size(); ++i) {
    file << "# " << what.steps[i] << "\n";
    auto const write = [&](std::string const& mark, traced_step const& step) {
      for (auto const& one : step.commands) file << mark << " > " << one << "\n";
      for (auto const& one : step.state) file << mark << " = " << one << "\n";
      file << mark << " : " << step.answered << "\n";
    };
    write("R", content.redisson[i]);
    write("l", content.ours[i]);
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
    if (line[2] == '>') step.commands.push_back(line.substr(4));
    if (line[2] == '=') step.state.push_back(line.substr(4));
    if (line[2] == ':') step.answered = line.size() > 4 ? line.substr(4) : "";
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
