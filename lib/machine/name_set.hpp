#pragma once

#include <machine/name_machine.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>

namespace latchkey::detail {

struct name_view {
  kind const* which;
  std::string_view name;
};

inline name_view view_of(name_view const& key) { return key; }
inline name_view view_of(std::unique_ptr<name_machine> const& of) { return {&of->which(), of->name()}; }

struct name_hash {
  using is_transparent = void;
  template <class A>
  std::size_t operator()(A const& of) const {
    auto const key = view_of(of);
    return std::hash<std::string_view>{}(key.name) ^ std::hash<void const*>{}(key.which);
  }
};

struct name_equal {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(A const& one, B const& other) const {
    auto const a = view_of(one), b = view_of(other);
    return a.which == b.which && a.name == b.name;
  }
};

// The names of a client. A machine knows its name: the set of them has no second copy.
using name_set = std::unordered_set<std::unique_ptr<name_machine>, name_hash, name_equal>;

}  // namespace latchkey::detail
