#include <wire/reentrant_family.hpp>

namespace latchkey::detail {

kind const& reentrant_kind() {
  // Never destroyed: a client of static storage may still release while the process exits.
  static reentrant_family const& the_one = *new reentrant_family({.name = "lock", .turns = true});
  return the_one;
}

}  // namespace latchkey::detail
