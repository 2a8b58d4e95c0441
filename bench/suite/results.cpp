#include <suite/results.hpp>

#include <cmath>
#include <cstdio>
#include <string>

namespace bench {

namespace {

// A string as JSON writes it; control characters become spaces.
std::string quoted(std::string const& text) {
  std::string made = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return made + "\"";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::isfinite(value) ? text : "null";
}

std::string field(char const* name, std::string const& value) { return quoted(name) + ": " + value; }
std::string field(char const* name, std::optional<double> value) {
  return field(name, value ? number(*value) : std::string("null"));
}

std::string to_json(row const& one) {
  return "{" + field("group", quoted(one.group)) + ", " + field("name", quoted(one.name)) + ", " +
         field("unit", quoted(one.unit)) + ", " + field("figure", one.figure) + ", " +
         field("against", quoted(one.against)) + ", " + field("reference", one.reference) + ", " +
         field("ratio", one.against.empty() ? std::nullopt : one.measured()) + ", " + field("most", one.most) + ", " +
         field("least", one.least) + ", " + field("missing", quoted(one.missing)) + ", " +
         field("note", quoted(one.note)) + ", " + field("verdict", quoted(one.verdict())) + "}";
}

std::string to_json(curve const& one) {
  std::string points;
  for (auto const& [x, y] : one.points) points += (points.empty() ? "[" : ", [") + number(x) + ", " + number(y) + "]";
  return "{" + field("plot", quoted(one.plot)) + ", " + field("line", quoted(one.line)) + ", " +
         field("points", "[" + points + "]") + "}";
}

template <class All>
std::string list(All const& all) {
  std::string text;
  for (auto const& one : all) text += (text.empty() ? "\n  " : ",\n  ") + to_json(one);
  return "[" + text + "]";
}

}  // namespace

std::optional<double> row::measured() const {
  if (ratio || against.empty()) return ratio ? ratio : figure;
  if (!figure || !reference || *reference == 0) return std::nullopt;
  return *figure / *reference;
}

std::string row::verdict() const {
  if (!missing.empty()) return "missing";
  if (!most && !least) return "";
  auto const value = measured();
  if (!value) return "missing";
  return (!most || *value <= *most) && (!least || *value >= *least) ? "kept" : "MISSED";
}

std::string results::to_json() const {
  return "{" + field("machine", quoted(machine)) + ", " + field("rounds", static_cast<double>(rounds)) + ",\n" +
         field("rows", list(rows)) + ",\n" + field("curves", list(curves)) + "}\n";
}

std::string text_of(row const& one) {
  std::string text = one.group + ": " + one.name + ": ";
  text += one.figure ? number(*one.figure) + " " + one.unit : "-";
  if (!one.against.empty() && one.measured()) text += ", " + number(*one.measured()) + " of " + one.against;
  if (one.most) text += ", at most " + number(*one.most);
  if (one.least) text += ", at least " + number(*one.least);
  if (auto const said = one.verdict(); !said.empty()) text += ": " + said;
  if (!one.missing.empty()) text += " (" + one.missing + ")";
  return text;
}

}  // namespace bench
