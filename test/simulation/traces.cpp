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

namespace {

// The rule without who broke it.
std::string rule_of(std::string const& broken) {
  std::string made;
  for (char const c : broken.substr(0, broken.find(':')))
    if (c == ' ' || (c >= 'a' && c <= 'z')) made += c;
  for (std::string_view lock : {"other", " k "})
    for (auto at = made.find(lock); at != std::string::npos; at = made.find(lock)) made.erase(at, lock.size());
  return made;
}

}  // namespace

verdict_of_run play(run_options const& options, lua_scripts& scripts) {
  verdict_of_run made;
  simulation run(options, scripts);
  try {
    run.run();
  } catch (violation const& broken) {
    made.broken = broken.what();
    made.by = broken.by;
  }
  for (auto const& one : run.moves_made()) made.moves.push_back(one.number);
  made.end = run.ended();
  made.steps = run.steps();
  made.calls = run.calls_done();
  made.told = run.told();
  made.step_by_step = run.step_by_step();
  return made;
}

void shrink(run_options const& failing, lua_scripts& scripts, shrunk& out) {
  out.options = failing;
  out.options.trace = false;
  auto const first = play(out.options, scripts);
  if (!first.broken) return;
  std::string const rule = rule_of(*first.broken);
  out.moves = first.moves;
  out.options.end = first.end;
  out.options.only = &out.moves;
  auto const fails = [&](run_options const& options) {
    ++out.tried;
    auto const again = play(options, scripts);
    return again.broken && rule_of(*again.broken) == rule;
  };
  if (!fails(out.options)) {  // the plan as a whole is what it takes
    out.options = failing;
    return;
  }
  for (bool smaller = true; smaller && out.tried < 20'000;) {
    smaller = false;
    for (bool run_options::*what : {&run_options::drift, &run_options::jitter, &run_options::split}) {
      auto simpler = out.options;
      simpler.*what = false;
      if (!(out.options.*what) || !fails(simpler)) continue;
      out.options.*what = false;
      smaller = true;
    }
    for (std::size_t size = std::max<std::size_t>(out.moves.size() / 2, 1);; size /= 2) {
      for (std::size_t at = 0; at < out.moves.size();) {
        auto fewer = out.moves;
        auto const from = fewer.begin() + static_cast<std::ptrdiff_t>(at);
        fewer.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, fewer.size() - at)));
        auto simpler = out.options;
        simpler.only = &fewer;
        if (fails(simpler)) {
          out.moves = fewer;
          smaller = true;
        } else {
          at += size;
        }
      }
      if (size <= 1) break;
    }
  }
}

}  // namespace latchkey::simulation
