#pragma once

#include <latchkey/latchkey.hpp>

#include <string_view>

namespace latchkey::test {

// Which kinds this latchkey has, so that the tests of one that is yet to come wait for it.
template <class Client = client>
constexpr bool knows(std::string_view kind) {
  if (kind == "fair_lock") return requires(Client const& one) {
      one.get_fair_lock("");
    };
  if (kind == "read_lock" || kind == "write_lock") return requires(Client const& one) {
      one.get_read_write_lock("");
    };
  if (kind == "multi_lock" || kind == "red_lock") return requires(Client const& one) {
      one.get_multi_lock({});
    };
  if (kind == "semaphore" || kind == "permit_semaphore" || kind == "count_down_latch") {
    return requires(Client const& one) { one.get_semaphore(""); };
  }
  return true;
}

}  // namespace latchkey::test
