#pragma once

namespace latchkey::detail {

struct operation;
struct owner_state;
struct waited_name;
class streak;
class wait_queue;

// How a lock goes on to the next caller of its client when its holder is done: by a turn, of which the server need not
// know; by a hand-off there; or, of kinds that have neither, by a try that leaves right behind the release. Else it is
// really released first. It only looks; whoever asks does what may be done. Source: docs/safety.md, section 4,
// "hand-off", and "Local turns".
class succession {
 public:
  succession(waited_name const& name, wait_queue const& queue, streak const& so_far)
      : of_(name), queue_(queue), streak_(so_far) {}

  // This caller may have a turn after an owner who holds it no more, and has sent no release of it. Retakes that the
  // server was asked for are of the streak, too.
  bool may_pass(owner_state const& from, operation const& call) const;
  // By the server, which shows it: where turns are many in a row they need no request.
  bool hands_off() const;
  // A release of this owner may take the head of the queue along.
  bool can_hand_off(owner_state const& from) const;
  // Of kinds that hand nothing off a try that waits to be sent leaves right behind the release.
  bool unsent_try() const;

 private:
  waited_name const& of_;
  wait_queue const& queue_;
  streak const& streak_;
};

}  // namespace latchkey::detail
