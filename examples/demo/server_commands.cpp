#include "server_commands.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace demo {
namespace {

using namespace std::string_view_literals;

constexpr std::array not_from_clients{
    "del"sv,     "exists"sv, "hdel"sv,    "hexists"sv,  "hget"sv, "hincrby"sv,         "hset"sv,
    "pexpire"sv, "pttl"sv,   "publish"sv, "spublish"sv, "info"sv, "config|resetstat"sv};

bool from_client(std::string_view command) {
  return std::find(not_from_clients.begin(), not_from_clients.end(), command) == not_from_clients.end();
}

}  // namespace

std::int64_t commands_of_clients(std::string_view command_statistics, way how) {
  constexpr auto prefix = "cmdstat_"sv;
  constexpr auto calls_mark = ":calls="sv;
  std::int64_t total = 0;
  std::int64_t evals = 0;
  while (!command_statistics.empty()) {
    auto const end = command_statistics.find('\n');
    auto const line = command_statistics.substr(0, end);
    command_statistics.remove_prefix(end == std::string_view::npos ? command_statistics.size() : end + 1);

    auto const mark = line.find(calls_mark);
    if (!line.starts_with(prefix) || mark == std::string_view::npos) continue;
    auto const command = line.substr(prefix.size(), mark - prefix.size());
    auto const digits = line.substr(mark + calls_mark.size());
    std::int64_t calls = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), calls);
    if (from_client(command)) total += calls;
    if (command == "eval") evals = calls;
  }
  return how == way::recipe ? total - evals : total;
}

}  // namespace demo
