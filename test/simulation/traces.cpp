#include <simulation/traces.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace latchkey::simulation {

namespace {

// A line of text that says what follows; for each run the number of its steps and a number for each, as they are in
// memory: a trace is compared on the machine that recorded it.
constexpr char const* name = "steps";
constexpr char const* mark = "latchkey-trace-1";

std::string path_in(std::string const& folder) { return (std::filesystem::path(folder) / name).string(); }

}  // namespace

trace_writer::trace_writer(std::string const& folder, options const& runs) : path_(path_in(folder)) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  out_.open(path_, std::ios::binary | std::ios::trunc);
  out_ << mark << ' ' << runs.seed << ' ' << runs.seeds << ' ' << runs.clients << ' ' << runs.steps << ' ' << runs.drift
       << runs.jitter << runs.split;
  for (auto const* kind : runs.kinds) out_ << ' ' << kind->name;
  out_ << '\n';
  if (!out_) throw std::runtime_error("cannot write " + path_);
}

void trace_writer::add(std::vector<std::uint32_t> const& steps) {
  auto const count = static_cast<std::uint32_t>(steps.size());
  out_.write(reinterpret_cast<char const*>(&count), sizeof count);
  out_.write(reinterpret_cast<char const*>(steps.data()), static_cast<std::streamsize>(count * sizeof count));
}

void trace_writer::close() {
  out_.close();
  if (!out_) throw std::runtime_error("cannot write " + path_);
}

trace_reader::trace_reader(std::string const& folder) : path_(path_in(folder)), in_(path_, std::ios::binary) {
  std::getline(in_, runs_);
  if (!in_ || !runs_.starts_with(mark)) throw std::runtime_error("no trace in " + path_);
}

void trace_reader::read_runs(options& out) const {
  std::istringstream words(runs_.substr(std::string_view(mark).size()));
  std::string chances;
  words >> out.seed >> out.seeds >> out.clients >> out.steps >> chances;
  if (chances.size() != 3) throw std::runtime_error("no trace in " + path_);
  out.drift = chances[0] == '1';
  out.jitter = chances[1] == '1';
  out.split = chances[2] == '1';
  out.kinds.clear();
  for (std::string wanted; words >> wanted;) {
    auto const& all = simulated_kinds();
    auto const found = std::find_if(all.begin(), all.end(), [&](auto const& kind) { return kind->name == wanted; });
    if (found == all.end()) throw std::runtime_error(path_ + " has runs of " + wanted + ", which is no kind any more");
    out.kinds.push_back(found->get());
  }
}

std::optional<std::size_t> trace_reader::first_difference(std::vector<std::uint32_t> const& steps) {
  std::uint32_t count = 0;
  in_.read(reinterpret_cast<char*>(&count), sizeof count);
  std::vector<std::uint32_t> recorded(in_ ? count : 0);
  in_.read(reinterpret_cast<char*>(recorded.data()), static_cast<std::streamsize>(recorded.size() * sizeof count));
  if (!in_) throw std::runtime_error(path_ + " ends before its last run");
  auto const [here, there] = std::mismatch(steps.begin(), steps.end(), recorded.begin(), recorded.end());
  if (here == steps.end() && there == recorded.end()) return {};
  return static_cast<std::size_t>(here - steps.begin()) + 1;
}

}  // namespace latchkey::simulation
