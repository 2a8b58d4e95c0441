#pragma once

#include <string>
#include <string_view>

namespace latchkey::tool {

enum class verdict { ok, warn, fail, skip };

// The rows of `latchkey doctor`, printed as they are found.
class findings {
 public:
  findings(bool as_json, bool strict) : json_(as_json), strict_(strict) {}

  // The rows that follow are about this node of a cluster.
  void at(std::string const& node) { node_ = node; }

  void ok(std::string_view id, std::string_view words) { add(verdict::ok, id, words, {}); }
  void warn(std::string_view id, std::string_view words, std::string_view remedy) {
    add(verdict::warn, id, words, remedy);
  }
  void fail(std::string_view id, std::string_view words, std::string_view remedy) {
    add(verdict::fail, id, words, remedy);
  }
  // What cannot be read is never ok.
  void skip(std::string_view id, std::string_view words) { add(verdict::skip, id, words, {}); }
  void add(verdict what, std::string_view id, std::string_view words, std::string_view remedy);

  // Is there what the exit code is to tell of?
  bool bad() const { return bad_; }

 private:
  bool json_;
  bool strict_;
  bool bad_ = false;
  std::string node_;
};

}  // namespace latchkey::tool
