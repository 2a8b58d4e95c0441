#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace latchkey::model {

// The data of one Redis. Times are milliseconds of the server's clock, as they are there.
class keyspace {
 public:
  using text_value = std::string;
  using hash_value = std::vector<std::pair<std::string, std::string>>;  // in the order of insertion, as small ones are
  using list_value = std::deque<std::string>;
  using scored_value = std::vector<std::pair<double, std::string>>;  // in order
  using data = std::variant<text_value, hash_value, list_value, scored_value>;
  static constexpr std::int64_t forever = -1;

  struct value {
    data holds;
    std::int64_t ends = forever;  // the last millisecond in which it is there
  };

  // Null: there is none, or its time is over.
  value* find(std::string_view key);
  value& make(std::string_view key, data holds);
  bool remove(std::string_view key);
  void clear() { values_.clear(); }

  // Every key that is there.
  std::vector<std::string> keys();

  std::int64_t now = 0;  // stands still while a command or a script runs
  std::int64_t microseconds = 0;

 private:
  std::map<std::string, value, std::less<>> values_;
};

}  // namespace latchkey::model
