#include <interop/support/cells.hpp>
#include <support/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <mutex>

namespace latchkey::test {

namespace {

// One file for each program run; test/interop/table.py puts them together.
void write(std::string const& line) {
  char const* const folder = std::getenv("LATCHKEY_INTEROP_CELLS");
  if (!folder) return;
  static std::mutex mutex;
  std::lock_guard const guard(mutex);
  std::ofstream(std::string(folder) + "/" + std::to_string(::getpid()) + ".cells", std::ios::app) << line << "\n";
}

}  // namespace

void demand(bool fulfilled, std::string const& otherwise) {
  if (!fulfilled) throw check_failed(otherwise);
}

void demand(answer const& got, std::string_view wanted, std::string const& of) {
  demand(got == wanted, of + ": " + to_string(got) + " instead of " + std::string(wanted));
}

void cell(std::string const& check, std::string const& kind, std::string const& direction,
          std::function<std::string()> const& body) {
  std::string problem;
  std::string remark;
  try {
    remark = body();
  } catch (std::exception const& error) {
    problem = error.what();
  }
  write(check + "\t" + kind + "\t" + direction + "\t" + (problem.empty() ? "yes\t" + remark : "NO\t" + problem));
  INFO(check << ", " << kind << ", " << direction);
  CHECK(problem.empty());
  if (!problem.empty()) WARN(problem);
}

void no_cell(std::string const& check, std::string const& kind, std::string const& why) {
  write(check + "\t" + kind + "\t\tnone\t" + why);
}

}  // namespace latchkey::test
