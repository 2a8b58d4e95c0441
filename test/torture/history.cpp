#include <support/raw_redis.hpp>
#include <torture/history.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace latchkey::torture {

void* map_bytes(std::string const& path, std::size_t size) {
  test::descriptor const file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) throw std::runtime_error("cannot write " + path);
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  return at;
}

// Zeros are what a new board is.
board& map_board(std::string const& path) { return map_file<board>(path); }

std::string board_file(std::string const& folder) { return folder + "/board"; }

namespace {

// Tells a line from a torn one.
std::uint32_t check_of(record const& line) {
  std::uint64_t sum = 0x9E3779B97F4A7C15u;
  for (auto part :
       {static_cast<std::uint64_t>(line.time), line.section, static_cast<std::uint64_t>(line.a),
        static_cast<std::uint64_t>(line.b), static_cast<std::uint64_t>(line.c),
        std::uint64_t{line.lock} << 32 | line.code,
        std::uint64_t{line.slot} << 16 | std::uint64_t{line.kind} << 8 | static_cast<std::uint64_t>(line.what)})
    sum = (sum ^ part) * 0xBF58476D1CE4E5B9u, sum ^= sum >> 29;
  return static_cast<std::uint32_t>(sum >> 32);
}

std::vector<std::string> read_lines(std::string const& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

history_writer::history_writer(std::string const& path)
    : file_(::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)) {
  if (!file_) throw std::runtime_error("cannot write " + path);
}

void history_writer::write(record line) {
  if (line.time == 0) line.time = now();
  line.check = check_of(line);
  if (::write(file_.get(), &line, sizeof line) != sizeof line) ::abort();  // a history with holes proves nothing
}

std::vector<record> read_history(std::string const& path) {
  std::vector<record> lines;
  std::ifstream file(path, std::ios::binary);
  for (record line; file.read(reinterpret_cast<char*>(&line), sizeof line);) {
    if (line.check != check_of(line)) throw std::runtime_error("unreadable history: " + path);
    lines.push_back(line);
  }
  return lines;
}

std::string worker_file(std::string const& folder, int index, int incarnation) {
  return folder + "/worker-" + std::to_string(index) + "-" + std::to_string(incarnation) + ".history";
}
std::string coordinator_file(std::string const& folder) { return folder + "/coordinator.history"; }
std::string left_behind_file(std::string const& folder) { return folder + "/left-behind.txt"; }

std::string accidents_file(std::string const& folder) { return folder + "/accidents.txt"; }

std::string servers_folder(std::string const& folder) { return folder + "/servers"; }

void write_lines(std::string const& path, std::vector<std::string> const& lines) {
  std::ofstream file(path);
  for (auto const& line : lines) file << line << '\n';
}

run_history read_run(std::string const& folder) {
  run_history made;
  made.coordinator = read_history(coordinator_file(folder));
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    auto const name = entry.path().filename().string();
    if (!name.starts_with("worker-") || !name.ends_with(".history")) continue;
    process_history one;
    one.lines = read_history(entry.path().string());
    if (one.lines.empty()) continue;  // killed before its first word
    one.index = static_cast<int>(one.lines.front().a);
    one.incarnation = static_cast<int>(one.lines.front().b);
    made.workers.push_back(std::move(one));
  }
  std::sort(made.workers.begin(), made.workers.end(), [](auto const& x, auto const& y) {
    return std::pair(x.index, x.incarnation) < std::pair(y.index, y.incarnation);
  });
  made.left_behind = read_lines(left_behind_file(folder));
  made.accidents = read_lines(accidents_file(folder));
  return made;
}

}  // namespace latchkey::torture
