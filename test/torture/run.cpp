#include <torture/checker.hpp>
#include <torture/nemesis.hpp>
#include <torture/progress.hpp>
#include <torture/remains.hpp>
#include <torture/run.hpp>

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace latchkey::torture {

namespace {

constexpr std::int64_t tick = 5 * ms;
constexpr std::int64_t longest_tick = 200 * ms;

class whole_run {
 public:
  whole_run(options const& run, std::string const& folder)
      : run_(run), shared_(map_board(board_file(folder))), on_(run, folder), bad_(on_, run.nemeses, run.seed) {}

  verdict play() {
    for (int i = 0; i < on_.workers(); ++i) on_.spawn(i);
    auto const end = now() + static_cast<std::int64_t>(run_.minutes * 60e9);
    while (now() < end) {
      auto const before = now();
      bad_.step();
      on_.running();
      shown_.update(shared_, bad_.struck());
      idle();
      note_stall(before);
    }
    finish();
    write_lines(accidents_file(on_.folder()), on_.accidents());
    write_lines(left_behind_file(on_.folder()), find_remains(on_));
    shown_.end();
    return check(read_run(on_.folder()));
  }

  int faults() const {
    int sum = 0;
    for (auto const& [name, count] : bad_.struck()) sum += count;
    return sum;
  }
  std::string struck() const { return in_words(bad_.struck()); }

 private:
  // What a nemesis takes is its own time, not the machine's.
  void idle() {
    auto const before = now();
    std::this_thread::sleep_for(std::chrono::nanoseconds(tick));
    note_stall(before);
  }
  void note_stall(std::int64_t before) {
    if (now() - before < longest_tick + tick) return;
    record line;
    line.what = what::stall;
    line.a = before;
    line.b = now();
    on_.log().write(line);
  }

  // Heals all, and gives the workers the time in which each of them takes each lock once more.
  void finish() {
    bad_.heal();
    shared_.now_is = board::last_round;
    auto const end = now() + 60 * second + run_.lease.count() * 10 * ms;
    while (on_.running() > 0 && now() < end) {
      shown_.update(shared_, bad_.struck());
      idle();
    }
    on_.end_overdue();
  }

  options const& run_;
  board& shared_;
  stage on_;
  nemeses bad_;
  progress shown_{run_.minutes};
};

void tell(verdict const& found, std::string const& folder, options const& run) {
  for (auto const& line : found.findings) std::printf("%s\n", line.c_str());
  bool const expected = found.good() || run.broken != broken::not_at_all;
  if (expected && !run.keep) {
    std::filesystem::remove_all(folder);
    return;
  }
  std::printf(
      "The histories are in %s\n  in words:  scripts/torture --show %s\n  check again: scripts/torture --check %s\n",
      folder.c_str(), folder.c_str(), folder.c_str());
  if (!found.good()) std::printf("  run again:   %s\n", command_for(run).c_str());
}

void tell_figures(verdict const& found) {
  std::string kinds;
  for (auto const& [name, count] : found.of_kind)
    kinds += (kinds.empty() ? "" : ", ") + name + " " + std::to_string(count);
  std::printf("sections by kind: %s\nacquires that were refused or failed: %llu; overlaps that a stranger made: %llu\n",
              kinds.c_str(), static_cast<unsigned long long>(found.refused),
              static_cast<unsigned long long>(found.excused));
}

}  // namespace

std::string new_folder() {
  auto path = (std::filesystem::temp_directory_path() / "latchkey-torture-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + path);
  return path;
}

int run_torture(options const& run) {
  auto const folder = new_folder();
  // A killed server loses nothing that it has written, wherever that is; in memory it writes faster.
  std::error_code ignored;
  if (std::filesystem::is_directory("/dev/shm", ignored) && ::access("/dev/shm", W_OK) == 0)
    ::setenv("TMPDIR", "/dev/shm", 1);
  std::printf("%s\nhistories: %s\n", command_for(run).c_str(), folder.c_str());
  std::fflush(stdout);
  auto const began = now();
  verdict found;
  {
    whole_run whole(run, folder);
    found = whole.play();
    std::printf("%d faults in %.0f s: %s\n", whole.faults(), static_cast<double>(now() - began) / 1e9,
                whole.struck().c_str());
  }
  tell_figures(found);
  tell(found, folder, run);
  std::printf("%s\n", found.last_line().c_str());
  return found.good() ? 0 : 1;
}

int check_again(std::string const& folder) {
  auto const found = check(read_run(folder));
  for (auto const& line : found.findings) std::printf("%s\n", line.c_str());
  tell_figures(found);
  std::printf("%s\n", found.last_line().c_str());
  return found.good() ? 0 : 1;
}

}  // namespace latchkey::torture
