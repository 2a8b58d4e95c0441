#pragma once

#include <machine/name_machine.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_set>

namespace latchkey::detail {

struct name_view {
  kind const* which;
  std::string_view name;
};

inline name_view view_of(name_view const& key) { return key; }
inline name_view view_of(std::unique_ptr<name_machine> const& of) { return {&of->which(), of->name()}; }

inline std::string_view name_of(std::string_view name) { return name; }
template <class A>
std::string_view name_of(A const& of) {
  return view_of(of).name;
}

// Of the name alone, by which namesakes of other kinds are found.
struct name_hash {
  using is_transparent = void;
  template <class A>
  std::size_t operator()(A const& of) const {
    return std::hash<std::string_view>{}(name_of(of));
  }
};

struct name_equal {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(A const& one, B const& other) const {
    if (name_of(one) != name_of(other)) return false;
    if constexpr (std::is_same_v<A, std::string_view> || std::is_same_v<B, std::string_view>)
      return true;  // whatever its kind
    else
      return view_of(one).which->same_as(*view_of(other).which);
  }
};

// The names of a client. A machine knows its name: the set of them has no second copy.
using name_set = std::unordered_set<std::unique_ptr<name_machine>, name_hash, name_equal>;

}  // namespace latchkey::detail
