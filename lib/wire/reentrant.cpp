#include <stdexcept>
#include <wire/kind.hpp>
#include <wire/reentrant_scripts.hpp>
#include <wire/verdict.hpp>

namespace latchkey::detail {
namespace {

outcome refused(reply const& element) {
  outcome made;
  made.what = made.grant = outcome::type::refused;
  made.text = refusal_of(element);
  return made;
}

outcome simply(outcome::type what) {
  outcome made;
  made.what = what;
  return made;
}

// Of acquire, and of the new owner's half of a hand-off.
outcome read_grant(reply const& element) {
  if (says(element, verdict::granted)) return simply(outcome::type::granted);
  if (is_refusal(element)) return refused(element);
  outcome made;
  if (read_hint(element, made.hint)) made.what = outcome::type::busy;
  return made;
}

outcome read_acquire(item const& one, reply const& element) {
  if (one.target > 1) {
    if (says(element, verdict::gone)) return simply(outcome::type::gone);
    // Who asks for more of what he holds is never told how long somebody else has it.
    if (element.is_integer() && !says(element, verdict::granted)) return {};
  }
  return read_grant(element);
}

// Of release to 0, force_unlock, and of the old owner's half of a hand-off.
outcome read_release(reply const& element) {
  if (says(element, verdict::absent)) return simply(outcome::type::absent);
  if (is_refusal(element)) return refused(element);
  outcome made;
  made.not_published = says(element, verdict::released_unpublished);
  if (made.not_published || says(element, verdict::released)) made.what = outcome::type::released;
  return made;
}

// Of what answers only whether the hold was there.
outcome read_done(reply const& element, verdict done, outcome::type meaning) {
  if (says(element, done)) return simply(meaning);
  if (says(element, verdict::absent)) return simply(outcome::type::absent);
  if (is_refusal(element)) return refused(element);
  return {};
}

outcome read_hand_off(reply const& element) {
  if (element.is_error()) return refused(element);
  if (!element.is_array() || element.elements.size() != 2) return {};
  auto made = read_release(element.elements[0]);
  auto granted = read_grant(element.elements[1]);
  // An answer of which one half makes no sense proves nothing with the other.
  if (made.what == outcome::type::malformed || granted.what == outcome::type::malformed) return {};
  made.grant = granted.what;
  made.hint = granted.hint;
  if (made.text.empty()) made.text = std::move(granted.text);
  return made;
}

class reentrant final : public kind {
 public:
  reentrant() : kind({.name = "lock"}) {}

  std::string channel(std::string_view name, std::string_view) const override {
    return prefixed("redisson_lock__channel", name);
  }

  std::string field(std::string_view client_id, std::uint64_t owner, unsigned char) const override {
    std::string made(client_id);
    made += ':';
    made += std::to_string(owner);
    return made;
  }

  script const& script_for(ask what) const override {
    switch (what) {
      case ask::acquire: return reentrant_acquire();
      case ask::release: return reentrant_release();
      case ask::hand_off: return reentrant_hand_off();
      case ask::renew: return reentrant_renew();
      case ask::extend: return reentrant_extend();
      case ask::force_unlock: return reentrant_force_unlock();
      case ask::none:
      case ask::leave: break;
    }
    throw std::logic_error("a reentrant lock has no such request");
  }

  void add_keys(item const& one, words& command) const override {
    command.add(one.name);
    if (one.what == ask::release || one.what == ask::hand_off || one.what == ask::force_unlock)
      command.add(channel(one.name, one.field));
  }

  void add_arguments(item const& one, words& command) const override {
    switch (one.what) {
      case ask::acquire:
      case ask::release:
        command.add(one.field);
        command.add(one.target);
        command.add(one.lease);
        return;
      case ask::hand_off:
        command.add(one.field);
        command.add(one.to_field);
        command.add(one.lease);
        return;
      case ask::renew:
      case ask::extend:
        command.add(one.field);
        command.add(one.lease);
        return;
      case ask::force_unlock:
      case ask::none:
      case ask::leave: return;
    }
  }

  outcome read(ask what, item const& one, reply const& answer) const override {
    switch (what) {
      case ask::acquire: return read_acquire(one, answer);
      case ask::release:
        if (one.target == 0) return read_release(answer);
        return read_done(answer, verdict::still_held, outcome::type::still_held);
      case ask::hand_off: return read_hand_off(answer);
      case ask::renew:
      case ask::extend: return read_done(answer, verdict::extended, outcome::type::extended);
      case ask::force_unlock: return read_release(answer);
      case ask::none:
      case ask::leave: break;
    }
    return {};
  }

  // Only `0` is ever published; what else comes on the channel is noise.
  wake on_message(std::string_view payload) const override { return payload == "0" ? wake::one : wake::nobody; }

  admission admit(unsigned char, int const* live) const override {
    return live[0] > 0 ? admission::at_once : admission::queue;
  }
};

}  // namespace

kind const& reentrant_kind() {
  // Never destroyed: a client of static storage may still release while the process exits.
  static reentrant const& the_one = *new reentrant;
  return the_one;
}

}  // namespace latchkey::detail
