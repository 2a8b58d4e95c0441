#include <wire/kinds.hpp>
#include <wire/reentrant_family.hpp>

namespace latchkey::detail {

// On the server it is the reentrant lock, held once: a request for the count 1 that is repeated finds its own field
// and changes nothing.
// [kind]
kind const& non_reentrant_kind() {
  static taken_once const& the_one = *new taken_once({.name = "non_reentrant_lock", .turns = true});
  return the_one;
}
// [/kind]

}  // namespace latchkey::detail
