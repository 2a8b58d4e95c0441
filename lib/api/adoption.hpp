#pragma once

#include <engine/lock_key.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace latchkey::detail {

// What a token says of a hold that may be adopted.
struct adoption {
  std::shared_ptr<lock_key const> key;
  std::uint64_t owner;                        // in this process
  std::uint64_t field;                        // under whose number the server shows it
  std::shared_ptr<std::string const> client;  // of that number; null: this one
  std::uint64_t fence;                        // 0: none
  // As the server has it.
  std::string shown() const;
};

// \throws lock_error `bad_argument`: that is none.
adoption read_adoption(std::shared_ptr<core> const& engine, std::string_view token);

// For the hold of a lock of one name; `owner` is `uuid:number`.
std::string token_of(lock_key const& key, std::string owner, std::uint64_t fence);

}  // namespace latchkey::detail
