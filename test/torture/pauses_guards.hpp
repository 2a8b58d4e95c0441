#pragma once

#include <string>

namespace latchkey::torture {

// What stands between a holder and a write that comes too late.
enum class guard { bare, lost, token };

constexpr int sets = 8;  // at a time for each guard, so that a run has many updates

inline std::string set_name(guard how, int set) {
  char const* const names[] = {"bare", "lost", "token"};
  return std::string(names[static_cast<int>(how)]) + "-" + std::to_string(set);
}

}  // namespace latchkey::torture
