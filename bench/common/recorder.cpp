#include <common/recorder.hpp>

#include <support/command_counter.hpp>

#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

namespace bench {
namespace {

char unhex(char c) { return static_cast<char>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); }

// One word of a line of MONITOR, without its quotes.
std::string word_at(std::string_view line, std::size_t& at) {
  std::string word;
  for (++at; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      word += line[at];
      continue;
    }
    char const what = line[++at];
    if (what == 'x') {
      word += static_cast<char>(unhex(line[at + 1]) * 16 + unhex(line[at + 2]));
      at += 2;
    } else {
      word += what == 'n'   ? '\n'
              : what == 'r' ? '\r'
              : what == 't' ? '\t'
              : what == 'a' ? '\a'
              : what == 'b' ? '\b'
                            : what;
    }
  }
  return word;
}

command_words words_of_line(std::string_view line) {
  command_words words;
  for (auto at = line.find('"'); at != line.npos; at = line.find('"', at + 1)) words.push_back(word_at(line, at));
  return words;
}

}  // namespace

std::vector<std::vector<command_words>> record(std::vector<latchkey::test::redis_server const*> const& servers,
                                               std::function<void()> const& what) {
  std::vector<std::unique_ptr<latchkey::test::command_counter>> ears;
  // What nobody waits for, as the end of a red lock's release, comes a little later.
  auto const calm = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  calm();
  for (auto const* server : servers) ears.push_back(std::make_unique<latchkey::test::command_counter>(*server));
  what();
  calm();
  std::vector<std::vector<command_words>> heard;
  for (auto const& ear : ears) {
    auto& calls = heard.emplace_back();
    for (auto const& line : ear->take_lines())
      if (auto words = words_of_line(line); !words.empty() && words[0] == "EVALSHA") calls.push_back(std::move(words));
  }
  return heard;
}

}  // namespace bench
