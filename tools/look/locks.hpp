#pragma once

#include <cstdint>
#include <look/session.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

struct holder {
  std::string owner;  // `uuid:number`
  std::string count;
  bool writes = false;
};

// A number with a time to live: of a plain lock of another library, or of a semaphore that somebody gave one.
constexpr std::string_view plain_or_semaphore = "plain or semaphore";

struct found_lock {
  std::string name;
  std::string kind;  // empty: nobody holds it
  std::vector<holder> holders;
  std::int64_t remaining = 0;             // milliseconds; -1: no time to live
  std::optional<std::int64_t> permits{};  // that are free, of what is, or may be, a semaphore

  bool held() const { return permits && kind != plain_or_semaphore ? *permits <= 0 : !kind.empty(); }
};

// For the beginning of a string, which is longer than an owner.
command beginning_of(std::string const& name);

// `uuid:number`, as holders write themselves.
bool is_owner(std::string_view text);

// Of what HGETALL says; empty: that is no lock.
std::optional<found_lock> read_hash(std::string const& name, std::vector<answer> const& fields);

// Of one name; without a kind: free, or no lock. A number without a time to live is none, but a semaphore.
found_lock look_at(session& server, std::string const& name);

// One line each, without its end.
std::string as_text(found_lock const& lock);
std::string as_json(found_lock const& lock);

}  // namespace latchkey::tool
