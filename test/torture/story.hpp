#pragma once

#include <torture/checker.hpp>
#include <torture/history.hpp>
#include <torture/kinds.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace latchkey::torture {

inline std::uint8_t kind_called(std::string const& name) {
  auto const& all = torture_kinds();
  auto const found = std::find_if(all.begin(), all.end(), [&](auto const& one) { return one.name == name; });
  if (found == all.end()) throw std::logic_error("there is no kind " + name);
  return static_cast<std::uint8_t>(found - all.begin());
}

// A history written by hand. Times in milliseconds.
struct story {
  run_history run;
  std::uint64_t sections = 0;

  explicit story(int workers = 2) {
    for (int i = 0; i < workers; ++i) {
      auto& one = run.workers.emplace_back();
      one.index = i;
      one.incarnation = 1;
      add(i, 1, what::born);
      one.lines.back().a = i;
      one.lines.back().b = 1;
    }
  }

  record& add(int worker, std::int64_t time, what happened) {
    auto& lines = run.workers[static_cast<std::size_t>(worker)].lines;
    auto& line = lines.emplace_back();
    line.time = time * ms;
    line.what = happened;
    return line;
  }
  record& coordinator(what happened, std::int64_t a, std::int64_t b, std::int64_t c = 0) {
    auto& line = run.coordinator.emplace_back();
    line.what = happened;
    line.a = a * ms;
    line.b = b * ms;
    line.c = c;
    return line;
  }

  struct times {
    std::int64_t asked, granted, trusted, left, released;
    std::uint32_t told = told_not;
    outcome end = outcome::released;
    std::int64_t lease = 0, longest = 1'000;
    std::uint64_t token = 0;
    bool reads = false;
    std::int64_t wait = 0;
  };
  void section(int worker, std::string const& kind, times at, std::uint32_t lock = 0) {
    auto const number = ++sections;
    auto const line = [&](std::int64_t time, what happened) -> record& {
      auto& made = add(worker, time, happened);
      made.section = number;
      made.kind = kind_called(kind);
      made.lock = lock;
      return made;
    };
    auto& asked = line(at.asked, what::ask);
    asked.a = at.wait * ms;
    asked.b = at.lease * ms;
    asked.c = 5 * second;
    asked.code = at.reads ? static_cast<std::uint32_t>(mode::shared) : 0u;
    if (at.granted == 0) return;
    line(at.granted, what::granted).a = static_cast<std::int64_t>(at.token);
    if (at.left == 0) return;
    auto& left = line(at.left, what::leave);
    left.a = at.trusted * ms;
    left.b = (at.lease != 0 ? at.lease : at.longest) * ms;
    left.c = 5 * second;
    left.code = at.told;
    if (at.released != 0) line(at.released, what::released).code = static_cast<std::uint32_t>(at.end);
  }
  void removed(std::int64_t begin, std::int64_t end, bool certain = true) {
    coordinator(what::deletion, begin, end).code = certain;
  }
  void call_of(int worker, call which, std::int64_t begin, std::int64_t end, std::int64_t value, std::uint32_t lock) {
    for (auto const happened : {what::begin, what::end}) {
      auto& line = add(worker, happened == what::begin ? begin : end, happened);
      line.section = sections + (happened == what::begin ? 1 : 0);
      if (happened == what::begin) ++sections;
      line.kind = kind_called("latch");
      line.lock = lock;
      line.code = happened == what::begin ? static_cast<std::uint32_t>(which) : 0;
      if (happened == what::begin)
        line.c = 5 * second;
      else
        line.a = value;
    }
  }
  verdict judge(allowances const& may = {}) const { return check(run, may); }
};

}  // namespace latchkey::torture
