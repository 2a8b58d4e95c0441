#pragma once

#include <machine/operation.hpp>

namespace latchkey::detail {

class name_machine;

// Holds that leave a client without a release, and those that began in another one.
struct transfer {
  static detached detach(name_machine& from, std::uint64_t owner, hold_id which);
  // The server has shown it: here it begins, as a fixed lease that is counted from when it was asked. It is renewed to
  // what it has, and told when the server still shows it and, where replicas are asked, when they have it.
  static void adopt(name_machine& into, owner_state& state, operation& call);
  static void confirmed(name_machine& into, owner_state& state, outcome const& answer);
  // The call ends without: what began for it is left to its lease.
  static void undo(name_machine& in, operation const& call);
  // What it would adopt is released, and the server may have been asked before that runs.
  static bool ends(name_machine& in, operation const& call);
  // A question about an owner whose field is that of another client.
  static void name_adopted(name_machine const& of, operation& query);

 private:
  static void tell(name_machine& into, operation& call);
};

}  // namespace latchkey::detail
