#pragma once

#include <machine/client_machine.hpp>

#include <cstdint>

namespace latchkey::test {

// A call that begins alone.
inline std::uint32_t start_one(detail::client_machine& machine, detail::operation& call, bool may_borrow,
                               detail::instant now, detail::actions& out) {
  detail::operation* const all[] = {&call};
  machine.prepare(call, out);
  return machine.start(all, may_borrow, now, out);
}

}  // namespace latchkey::test
