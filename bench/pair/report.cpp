#include <common/json_text.hpp>
#include <pair/report.hpp>

#include <cstdio>

namespace bench {
namespace {

constexpr double disturbing = 0.10;  // of the machine

template <class... Values>
std::string format(char const* how, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

std::string numbers(std::vector<side_result> const& rounds, double side_result::*value) {
  std::string text;
  for (auto const& one : rounds) text += (text.empty() ? "" : ", ") + format("%.1f", one.*value);
  return "[" + text + "]";
}

std::string side_json(side_result const& of, std::vector<side_result> const& rounds) {
  return format("{\"p50_us\": %.2f, \"p90_us\": %.2f, \"cpu_us\": %.2f, \"thread_cpu_us\": %.2f, ", of.p50, of.p90,
                of.cpu, of.thread_cpu) +
         "\"rounds_p50_us\": " + numbers(rounds, &side_result::p50) +
         ", \"rounds_p90_us\": " + numbers(rounds, &side_result::p90) + "}";
}

}  // namespace

std::string table_head() {
  return "                      bare, us       latchkey, us   ratio          CPU per pair, us   gate           others\n"
         "regime                 p50     p90    p50     p90    p50    p90    bare    latchkey   p50    p90     used\n";
}

std::string table_line(regime_result const& of) {
  return format("%-20s %6.1f %7.1f %6.1f %7.1f  %5.2f%s %5.2f  %6.1f    %6.1f   %5.2f  %5.2f   %4.0f %%  %s\n",
                std::string(of.of->name).c_str(), of.bare.p50, of.bare.p90, of.latchkey.p50, of.latchkey.p90,
                of.ratio_p50, of.unstable() ? "~" : " ", of.ratio_p90, of.bare.cpu, of.latchkey.cpu, of.of->most_p50,
                of.of->most_p90, 100 * of.machine.others, of.kept() ? "kept" : "MISSED");
}

std::string remarks(std::vector<regime_result> const& results) {
  std::string text;
  std::string disturbed, unstable, stolen, missed;
  auto const add = [](std::string& list, regime_result const& one) {
    list += (list.empty() ? "" : ", ") + std::string(one.of->name);
  };
  for (auto const& one : results) {
    if (one.machine.others > disturbing) add(disturbed, one);
    if (one.machine.stolen > disturbing / 2) add(stolen, one);
    if (one.unstable()) add(unstable, one);
    if (!one.kept()) add(missed, one);
  }
  if (disturbed.empty() && stolen.empty()) text += "State: nobody else used the machine.\n";
  if (!disturbed.empty())
    text += "State: other programs used the machine during: " + disturbed +
            ".\n  With busy cores a blocked caller wakes up cheaply, so back to back there is little to be gained.\n";
  if (!stolen.empty()) text += "State: the host took time from this virtual machine during: " + stolen + ".\n";
  if (!unstable.empty()) text += "Unstable (~), the rounds differ much: " + unstable + ".\n";
  text += missed.empty() ? "Every gate was kept.\n" : "Gates missed: " + missed + ".\n";
  return text;
}

std::string to_json(std::string const& machine, std::vector<regime_result> const& results) {
  std::string text = "{\"machine\": " + quoted(machine) + ",\n \"regimes\": [";
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& one = results[i];
    text += i == 0 ? "\n  {" : ",\n  {";
    text +=
        "\"name\": " + quoted(std::string(one.of->name)) + ",\n   \"bare\": " + side_json(one.bare, one.bare_rounds) +
        ",\n   \"latchkey\": " + side_json(one.latchkey, one.latchkey_rounds) + ",\n   " +
        format("\"ratio_p50\": %.4f, \"ratio_p90\": %.4f, \"spread\": %.4f, \"most_p50\": %.2f, \"most_p90\": %.2f, ",
               one.ratio_p50, one.ratio_p90, one.spread, one.of->most_p50, one.of->most_p90) +
        format("\"others_used\": %.3f, \"stolen\": %.3f, \"kept\": %s}", one.machine.others, one.machine.stolen,
               one.kept() ? "true" : "false");
  }
  return text + "\n ]}\n";
}

}  // namespace bench
