#include <torture/rules.hpp>

#include <cstdio>

namespace latchkey::torture {

std::string in_ms(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(nanoseconds) / 1e6);
  return text;
}

verdict check(run_history const& run) {
  verdict out;
  auto const all = assemble(run);
  for (auto const& one : all.sections) {
    if (one.granted == 0) continue;
    ++out.sections;
    ++out.of_kind[torture_kinds()[one.kind].name];
  }
  check_exclusion(all, out);
  check_tokens(all, out);
  check_latches(all, out);
  check_losses(all, out);
  check_calls(all, out);
  check_shares(all, out);
  check_storms(all, out);
  check_pools(run, all, out);
  check_remains(run, out);
  return out;
}

std::string verdict::last_line() const {
  auto const part = [](char const* name, std::uint64_t value) { return name + ("=" + std::to_string(value)); };
  return part("sections", sections) + " " + part("violations", violations) + " " +
         part("lost_reported", lost_reported) + " " + part("lost_unreported", lost_unreported) + " " +
         part("hung", hung) + " " + part("leaked", leaked) + " " + part("late", late) + " " + part("storm", storm) +
         " " + part("starved", starved);
}

}  // namespace latchkey::torture
