#pragma once

#include <base/instant.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace latchkey::test {

using detail::instant;
using detail::milliseconds;
using detail::never;

// The data of one Redis: hashes with a time to live, in virtual time.
class fake_store {
 public:
  struct hash {
    std::map<std::string, std::int64_t, std::less<>> fields;
    instant ends = never;
  };

  explicit fake_store(instant const& now) : now_(now) {}

  // Null: there is none, or its time is over.
  hash* find(std::string_view key);
  hash& make(std::string_view key) {
    find(key);  // one whose time is over does not come back
    return hashes_[std::string(key)];
  }
  bool remove(std::string_view key) { return hashes_.erase(std::string(key)) > 0; }
  void clear() { hashes_.clear(); }

  bool has(std::string_view key, std::string_view field);
  std::int64_t count(std::string_view key, std::string_view field);  // 0: none
  std::int64_t ttl(std::string_view key);                            // milliseconds; -1 none, -2 no key
  void expire(std::string_view key, std::int64_t lease);
  void set(std::string_view key, std::string_view field, std::int64_t count) {
    make(key).fields[std::string(field)] = count;
  }
  // All fields of all keys, as `key/field=count`.
  std::set<std::string> all();

  bool full = false;                           // a first write is refused, as for maxmemory
  std::set<std::string, std::less<>> foreign;  // keys that hold something that is no hash

  instant now() const { return now_; }

 private:
  instant const& now_;
  std::map<std::string, hash, std::less<>> hashes_;
};

}  // namespace latchkey::test
