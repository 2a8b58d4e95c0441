#include <simulation/shrink.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

// The rule without who broke it.
std::string rule_of(std::string const& broken) {
  std::string made;
  for (char const c : broken.substr(0, broken.find(':')))
    if (c == ' ' || (c >= 'a' && c <= 'z')) made += c;
  for (std::string_view name : {"other", " k "})
    for (auto at = made.find(name); at != std::string::npos; at = made.find(name)) made.erase(at, name.size());
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
