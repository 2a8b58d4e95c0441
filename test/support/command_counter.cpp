#include <support/command_counter.hpp>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace latchkey::test {

command_counter::command_counter(redis_server const& server) : admin_(server.admin()), monitor_(server.admin()) {
  if (!server.where().path.empty()) throw std::logic_error("clients on Unix sockets cannot be told from the admin");
  monitor_.ok("MONITOR");
}

std::vector<std::string> command_counter::take_lines() {
  // MONITOR shows commands in the order in which they ran: what comes before the mark happened before it.
  auto const mark = "\"mark " + std::to_string(++marks_) + "\"";
  admin_.ok("ECHO", mark.substr(1, mark.size() - 2));
  std::vector<std::string> lines;
  while (true) {
    auto line = monitor_.receive().text;
    bool const by_admin = line.find(" unix:") < line.find(']');
    bool const by_script = line.find(" lua]") < line.find('"');
    if (by_admin && line.find(mark) != std::string::npos) return lines;
    if (!by_admin && !by_script) lines.push_back(std::move(line));
  }
}

std::map<std::string, int> command_counter::take() {
  std::map<std::string, int> counts;
  for (auto const& line : take_lines()) {
    auto const begin = line.find('"') + 1;
    auto name = line.substr(begin, line.find('"', begin) - begin);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    ++counts[name];
  }
  return counts;
}

}  // namespace latchkey::test
