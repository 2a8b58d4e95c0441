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

namespace {

struct outcome {
  std::string problem;
  std::string remark;
};

outcome outcome_of(std::function<std::string()> const& body) {
  try {
    return {{}, body()};
  } catch (std::exception const& error) {
    return {error.what(), {}};
  }
}

void report(std::string const& check, std::string const& plain_kind, std::string const& direction, outcome const& got) {
  bool const good = got.problem.empty();
  auto const kind = plain_kind + (other_redisson().empty() ? "" : " " + other_redisson());
  write(check + "\t" + kind + "\t" + direction + "\t" + (good ? "yes\t" + got.remark : "NO\t" + got.problem));
  INFO(check << ", " << kind << ", " << direction << ": " << got.problem);
  CHECK(good);
}

}  // namespace

void cell(std::string const& check, std::string const& kind, std::string const& direction,
          std::function<std::string()> const& body) {
  report(check, kind, direction, outcome_of(body));
}

void cells_together(std::string const& check, std::vector<cell_job> const& jobs) {
  std::vector<std::future<outcome>> running;
  for (auto const& job : jobs) {
    running.push_back(std::async(std::launch::async, [&job] { return outcome_of(job.body); }));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) report(check, jobs[i].kind, jobs[i].direction, running[i].get());
}

void no_cell(std::string const& check, std::string const& kind, std::string const& why) {
  write(check + "\t" + kind + "\t\tnone\t" + why);
}

}  // namespace latchkey::test
