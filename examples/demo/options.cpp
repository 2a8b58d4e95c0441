#include "options.hpp"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>

#include <sstream>

namespace demo {
namespace {

namespace po = boost::program_options;

// `into` outlives what is returned.
po::options_description described(options& into) {
  po::options_description all("Options");
  auto const number = [&](std::string const& name, std::int64_t& value, std::int64_t least, std::int64_t most,
                          char const* meaning) {
    auto const check = [=](std::int64_t given) {
      if (given < least || given > most)
        throw bad_option("--" + name + " is at least " + std::to_string(least) + " and at most " +
                         std::to_string(most));
    };
    all.add_options()(name.c_str(), po::value(&value)->default_value(value)->value_name("N")->notifier(check), meaning);
  };
  number("requests", into.requests, 1, 1'000'000, "requests of each row, all in all");
  number("concurrency", into.concurrency, 1, 8'000, "requests that run at a time");
  number("stock", into.stock, 0, 1'000'000'000, "what there is to sell");
  number("processes", into.processes, 1, 64, "processes that share the stock");
  number("think-us", into.think_us, 0, 1'000'000, "microseconds between reading the stock and writing it");
  number("limit-s", into.limit_s, 1, 3'600, "seconds after which a recipe is cut off");
  auto more = all.add_options();
  more("cluster", "the lock is in a private Redis Cluster of three masters (rows: no recipes)");
  more("failover", "the same with replicas; its master is killed in the middle of each row");
  more("only", po::value(&into.only)->composing()->value_name("ROW"), "run this row; may be given several times");
  more("json", po::value(&into.json)->value_name("FILE"), "write the results there as well");
  more("help,h", "print this");
  return all;
}

// What cannot be together.
void check(options const& wanted) {
  if (wanted.processes > wanted.concurrency) {
    throw bad_option("--processes " + std::to_string(wanted.processes) + " is more than --concurrency " +
                     std::to_string(wanted.concurrency) + ": every process runs at least one request at a time");
  }
  for (auto const& name : wanted.only) {
    if (!find_row(name)) throw bad_option("--only: there is no row '" + name + "'; the rows are " + row_names());
    if (wanted.locks != lock_place::with_stock && !can_lock_in_cluster(all_rows()[*find_row(name)].how))
      throw bad_option("--only " + name + " is not for a cluster: its lock is where the stock is");
  }
}

}  // namespace

options parse_options(std::vector<std::string> const& arguments) try {
  namespace style = po::command_line_style;
  options wanted;
  auto const all = described(wanted);
  po::variables_map given;
  po::store(po::command_line_parser(arguments)
                .options(all)
                .positional({})
                .style(style::unix_style & ~style::allow_guessing)
                .run(),
            given);
  po::notify(given);
  wanted.help = given.contains("help");
  if (given.contains("cluster")) wanted.locks = lock_place::cluster;
  if (given.contains("failover")) wanted.locks = lock_place::failing_cluster;
  if (given.contains("json") && wanted.json.empty()) throw bad_option("--json needs the name of a file");
  check(wanted);
  return wanted;
} catch (po::error const& problem) {
  throw bad_option(problem.what());
}

std::string help_text() {
  options defaults;
  std::ostringstream text;
  text << "A flash sale: several processes share one stock in a private redis-server, and many requests at a time\n"
          "read it, think for a moment and write it back. One row for each way of locking; a table at the end.\n\n"
          "Usage: latchkey_demo [options]\n\n"
       << described(defaults) << "\nRows:\n";
  for (auto const& row : all_rows()) {
    std::string left = "  " + std::string(row.name);
    left.resize(22, ' ');
    text << left << row.meaning << '\n';
  }
  text << "\nExit status: 0 done; 1 something went wrong, a latchkey row that oversold, lost or hung anything "
          "included;\n"
          "2 a bad option.\n";
  return text.str();
}

}  // namespace demo
