#pragma once

#include <support/unit/world.hpp>

namespace latchkey::test {

// What `ask` sends stands unread in a connection that is then lost: a late copy.
template <class Ask>
void leave_unread(world& w, role as, Ask const& ask) {
  w.late_bytes = false;
  w.deafen(as);
  ask();
  w.run();
  w.lose(as, fate::late);
}

// What `ask` sends is executed, and the connection is lost before the answer arrives.
template <class Ask>
void leave_unanswered(world& w, role as, Ask const& ask) {
  w.mute(as);
  ask();
  w.run();
  w.lose(as, fate::gone);
}

inline task& granted(world& w, task& one) {
  w.await(one);
  if (!one.granted()) w.fail(one.label + " was not granted");
  return one;
}

}  // namespace latchkey::test
