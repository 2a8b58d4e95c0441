#pragma once

#include <machine/recent_releases.hpp>

namespace latchkey::detail {

class name_machine;
struct home;
struct owner_state;

// What a name does when another server takes over its data, and perhaps has not heard of the last of what was done.
struct takeover {
  // Every hold is looked for there before anything else is asked, whoever has a lease of his own included.
  static void look_after_holds(name_machine& name);
  // Another server of the cluster has it from now on. What is under way is answered where it was sent: what ran there
  // came along.
  static void move(name_machine& name, home& to);
  // An owner who had released it is to have nothing there.
  static void release_again(name_machine& name, recent_releases::entry const& was);
  // The server has nothing of this owner; who takes over may have.
  static void may_come_back(owner_state& state, unsigned char mode);
  // A server that was replaced has not answered this request. If it becomes the master again, or has been, its owner is
  // to have nothing there but what he holds.
  static void may_run_later(owner_state& state, home const& at);
  // What could not be released again as long as its owner stood under another one's field, or had another kind of the
  // lock in use.
  static void catch_up(owner_state& state);
  // No server has it any more: what waits for its messages there goes first.
  static void end(name_machine& name);
  // What waits for the answer of a server that was replaced keeps no release waiting: an extension is not made, and who
  // enters again does so afterwards.
  static void make_way(owner_state& state);
  // A re-entry or an extension that waits to be sent: who wanted the former stands behind its owner, who wanted the
  // latter is told that it was not made.
  static void withdraw(owner_state& state);
  // For the first release that stands behind it, which is the next one then.
  static void let_release_pass(owner_state& state);
};

}  // namespace latchkey::detail
