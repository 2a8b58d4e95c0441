#include "json.hpp"
#include "options.hpp"
#include "run_row.hpp"
#include "table.hpp"
#include "verdict.hpp"
#include "worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

std::vector<demo::row> chosen_rows(demo::options const& wanted) {
  std::vector<demo::row> rows;
  for (auto const& row : demo::all_rows()) {
    bool const named = std::find(wanted.only.begin(), wanted.only.end(), row.name) != wanted.only.end();
    if (wanted.only.empty() || named) rows.push_back(row);
  }
  return rows;
}

void introduce(demo::options const& wanted) {
  std::cout << "Flash sale: " << wanted.processes << (wanted.processes == 1 ? " process has" : " processes share")
            << " a stock of " << wanted.stock << " in a private redis-server;\n"
            << wanted.concurrency << " requests at a time, " << wanted.requests
            << " in all, each reads the stock, thinks " << wanted.think_us << " us and writes it back.\n\n"
            << std::flush;
}

int run(demo::options const& wanted) {
  demo::signals const bell;
  demo::raise_file_limit(wanted);
  std::ofstream json;
  if (!wanted.json.empty()) {
    // Opened first: a minute of work must not end at a name that cannot be written.
    json.open(wanted.json);
    if (!json) throw demo::bad_option("--json: cannot write '" + wanted.json + "'");
  }
  introduce(wanted);
  demo::private_server const server(demo::connections_needed(wanted));

  auto const rows = chosen_rows(wanted);
  demo::progress shown(::isatty(STDOUT_FILENO) == 1, rows.size());
  std::vector<demo::row_result> results;
  try {
    for (auto const& row : rows) results.push_back(demo::run_row(wanted, row, server, bell, shown));
  } catch (...) {
    shown.clear();
    throw;
  }

  std::cout << "\n"
            << demo::result_table(results) << "\n"
            << demo::table_notes(results) << "\n"
            << demo::conclusion(results) << std::endl;
  if (json.is_open() && !(json << demo::to_json(wanted, results) << std::flush)) {
    throw std::runtime_error("cannot write " + wanted.json);
  }
  return std::all_of(results.begin(), results.end(), demo::row_is_good) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int bad_option_status = 2;
  std::vector<std::string> const arguments(argv + 1, argv + argc);
  // How the demo starts itself for its worker processes; not for people.
  if (arguments.size() == 2 && arguments[0] == "--worker") {
    return demo::run_worker(static_cast<std::uint32_t>(std::stoul(arguments[1])));
  }
  try {
    auto const wanted = demo::parse_options(arguments);
    if (wanted.help) {
      std::cout << demo::help_text();
      return EXIT_SUCCESS;
    }
    return run(wanted);
  } catch (demo::bad_option const& error) {
    std::cerr << "latchkey_demo: " << error.what() << "\nSee latchkey_demo --help.\n";
    return bad_option_status;
  } catch (demo::interrupted const& signal) {
    std::cerr << "latchkey_demo: interrupted\n";
    return 128 + signal.signal_number;
  } catch (std::exception const& error) {
    std::cerr << "latchkey_demo: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
