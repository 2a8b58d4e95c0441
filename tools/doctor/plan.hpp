#pragma once

#include <base/duration.hpp>
#include <look/session.hpp>
#include <optional>
#include <options/connection.hpp>
#include <string>
#include <vector>

namespace latchkey::tool {

// What `latchkey doctor` was asked for, checked.
struct doctor_plan {
  connection server;
  std::optional<connection> admin;
  std::string user;  // whose rights the admin's connection asks for; empty: none
  std::vector<std::string> kinds;
  std::string prefix;   // of scratch names
  std::string scratch;  // a name that nothing else uses; of a cluster one on the node that is looked at
  milliseconds lease;   // the shortest in use: what a delay is compared with

  // The pattern of the scratch names.
  std::string names() const { return prefix + ":*"; }
};

// What the server says of itself, if it says so to us.
class server_facts {
 public:
  explicit server_facts(session& asked) : asked_(asked) {}

  // A line of INFO; nothing: there is none, or INFO is refused.
  std::optional<std::string> info(std::string const& name);
  std::optional<std::int64_t> number(std::string const& name);
  // Nothing: CONFIG is refused, or there is no such setting.
  std::optional<std::string> setting(std::string const& name);
  session& asked() { return asked_; }

 private:
  session& asked_;
  std::optional<std::string> all_;
};

}  // namespace latchkey::tool
