#include "options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace demo {
namespace {

struct number_option {
  std::string_view name;
  std::int64_t options::*member;
  std::int64_t least;
  std::int64_t most;
  std::string_view meaning;
};

constexpr std::array<number_option, 6> number_options{{
    {"--requests", &options::requests, 1, 1'000'000, "requests of each row, all in all"},
    {"--concurrency", &options::concurrency, 1, 8'000, "requests that run at a time"},
    {"--stock", &options::stock, 0, 1'000'000'000, "what there is to sell"},
    {"--processes", &options::processes, 1, 64, "processes that share the stock"},
    {"--think-us", &options::think_us, 0, 1'000'000, "microseconds between reading the stock and writing it"},
    {"--limit-s", &options::limit_s, 1, 3'600, "seconds after which a recipe is cut off"},
}};

std::int64_t parse_number(number_option const& option, std::string const& text) {
  std::int64_t value = 0;
  auto const end = text.data() + text.size();
  auto const [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || value < option.least || value > option.most) {
    throw bad_option(std::string(option.name) + " takes a whole number from " + std::to_string(option.least) + " to " +
                     std::to_string(option.most) + ", not '" + text + "'");
  }
  return value;
}

void apply(options& wanted, std::string const& name, std::string const& value) {
  for (auto const& option : number_options) {
    if (option.name == name) {
      wanted.*option.member = parse_number(option, value);
      return;
    }
  }
  if (value.empty()) throw bad_option(name + " needs a value");
  if (name == "--json") {
    wanted.json = value;
    return;
  }
  if (!find_row(value)) throw bad_option("--only: there is no row '" + value + "'; the rows are " + row_names());
  wanted.only.push_back(value);
}

// False: there is no such option.
bool set_flag(options& wanted, std::string_view name) {
  if (name == "--help" || name == "-h")
    wanted.help = true;
  else if (name == "--cluster")
    wanted.locks = std::max(wanted.locks, lock_place::cluster);
  else if (name == "--failover")
    wanted.locks = lock_place::failing_cluster;
  else
    return false;
  return true;
}

// What cannot be together.
void check(options const& wanted) {
  if (wanted.processes > wanted.concurrency) {
    throw bad_option("--processes " + std::to_string(wanted.processes) + " is more than --concurrency " +
                     std::to_string(wanted.concurrency) + ": every process runs at least one request at a time");
  }
  for (auto const& name : wanted.only) {
    if (wanted.locks != lock_place::with_stock && !can_lock_in_cluster(all_rows()[*find_row(name)].how))
      throw bad_option("--only " + name + " is not for a cluster: its lock is where the stock is");
  }
}

bool takes_value(std::string_view name) {
  if (name == "--only" || name == "--json") return true;
  for (auto const& option : number_options) {
    if (option.name == name) return true;
  }
  return false;
}

}  // namespace

options parse_options(std::vector<std::string> const& arguments) {
  options wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto const& argument = arguments[i];
    if (set_flag(wanted, argument)) continue;
    auto const equals = argument.find('=');
    auto const name = argument.substr(0, equals);
    if (!takes_value(name)) throw bad_option("there is no option '" + name + "'");
    if (equals != std::string::npos) {
      apply(wanted, name, argument.substr(equals + 1));
    } else {
      if (++i == arguments.size()) throw bad_option(name + " needs a value");
      apply(wanted, name, arguments[i]);
    }
  }
  check(wanted);
  return wanted;
}

std::string help_text() {
  std::string text =
      "A flash sale: several processes share one stock in a private redis-server, and many requests at a time\n"
      "read it, think for a moment and write it back. One row for each way of locking; a table at the end.\n\n"
      "Usage: latchkey_demo [options]\n\n";
  options const defaults;
  for (auto const& option : number_options) {
    std::string left = "  " + std::string(option.name) + " N";
    left.resize(22, ' ');
    text += left + std::string(option.meaning) + " (" + std::to_string(defaults.*option.member) + ")\n";
  }
  text += "  --cluster           the lock is in a private Redis Cluster of three masters (rows: no recipes)\n";
  text += "  --failover          the same with replicas; its master is killed in the middle of each row\n";
  text += "  --only ROW          run this row; may be given several times\n";
  text += "  --json FILE         write the results there as well\n";
  text += "  --help              print this\n\nRows:\n";
  for (auto const& row : all_rows()) {
    std::string left = "  " + std::string(row.name);
    left.resize(22, ' ');
    text += left + std::string(row.meaning) + "\n";
  }
  text +=
      "\nExit status: 0 done; 1 something went wrong, a latchkey row that oversold, lost or hung anything included;\n"
      "2 a bad option.\n";
  return text;
}

}  // namespace demo
