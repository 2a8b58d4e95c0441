#include <wire/commands.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

// Of what answers only whether the hold was there.
outcome read_done(reply const& element, verdict done, outcome::type meaning) {
  if (says(element, done)) return {.what = meaning};
  if (says(element, verdict::absent)) return {.what = outcome::type::absent};
  if (is_refusal(element)) return refused_by(element);
  return {};
}

kind::traits completed(kind::traits t) {
  constexpr std::array reentrant{&reentrant_acquire, &reentrant_release, &reentrant_hand_off,
                                 &reentrant_renew,   &reentrant_extend,  &reentrant_force_unlock};
  for (std::size_t i = 0; i < reentrant.size(); ++i)
    if (!t.scripts[i]) t.scripts[i] = reentrant[i];
  return t;
}

}  // namespace

reentrant_family::reentrant_family(traits t) : kind(completed(std::move(t))) {}

std::string_view reentrant_family::channel_prefix() const { return "redisson_lock__channel"; }

std::string reentrant_family::channel(std::string_view name, std::string_view) const {
  return prefixed(channel_prefix(), name);
}

script const* reentrant_family::acquire_all() const {
  return &script_for(ask::acquire) == &reentrant_acquire() ? &reentrant_acquire_all() : nullptr;
}

void reentrant_family::add_keys(item const& item, words& command) const { command.add(item.name); }

void reentrant_family::add_arguments(item const& item, words& command) const {
  bool const tells = item.what == ask::release || item.what == ask::hand_off || item.what == ask::force_unlock;
  if (tells && rules().listens) add_prefixed(command, channel_prefix(), item.name);
  switch (item.what) {
    case ask::acquire:
    case ask::release: return command.add_all(item.field, item.target, item.lease);
    case ask::hand_off: return command.add_all(item.field, item.to_field, item.lease);
    case ask::renew:
    case ask::extend: return command.add_all(item.field, item.lease);
    case ask::force_unlock:
    case ask::none:
    case ask::leave:
    case ask::command: return;
  }
}

outcome reentrant_family::read(ask what, item const& item, reply const& answer) const {
  switch (what) {
    case ask::acquire: return read_acquire(item, answer);
    case ask::release:
      if (item.target == 0) return read_given_back(answer);
      return read_done(answer, verdict::still_held, outcome::type::still_held);
    case ask::hand_off: return read_hand_off(answer);
    case ask::renew:
    case ask::extend: return read_done(answer, verdict::extended, outcome::type::extended);
    case ask::force_unlock: return read_given_back(answer);
    case ask::leave: return read_done(answer, verdict::released, outcome::type::released);
    case ask::none:
    case ask::command: break;
  }
  return {};
}

outcome reentrant_family::read_grant(reply const& element) const {
  if (says(element, verdict::granted)) return {.what = outcome::type::granted};
  if (is_refusal(element)) return refused_by(element);
  outcome made;
  if (read_hint(element, made.hint)) made.what = outcome::type::busy;
  return made;
}

outcome reentrant_family::read_acquire(item const& item, reply const& element) const {
  if (item.bundled && says(element, verdict::untried)) return {.what = outcome::type::untried};
  if (item.target > 1) {
    if (says(element, verdict::gone)) return {.what = outcome::type::gone};
    // Who asks for more of what he holds is never told how long somebody else has it.
    if (element.is_integer() && !says(element, verdict::granted)) return {};
  }
  return read_grant(element);
}

outcome reentrant_family::read_hand_off(reply const& element) const {
  if (element.is_error()) return refused_by(element);
  if (!element.is_array() || element.elements.size() != 2) return {};
  auto made = read_given_back(element.elements[0]);
  auto granted = read_grant(element.elements[1]);
  // An answer of which one half makes no sense proves nothing with the other.
  if (made.what == outcome::type::malformed || granted.what == outcome::type::malformed) return {};
  made.grant = granted.what;
  made.hint = granted.hint;
  made.token = granted.token;
  if (made.text.empty()) made.text = std::move(granted.text);
  return made;
}

// Nothing else is ever published.
bool reentrant_family::wakes(std::string_view message) const { return message == "0"; }

kind::admission reentrant_family::admit(unsigned char, int const* live) const {
  return live[0] > 0 ? admission::at_once : admission::queue;
}

kind::admission taken_once::admit(unsigned char, int const* live) const {
  return live[0] > 0 ? admission::already_held : admission::queue;
}

kind const& reentrant_kind() {
  // Never destroyed: a client of static storage may still release while the process exits.
  static reentrant_family const& the_one = *new reentrant_family({.name = "lock", .turns = true});
  return the_one;
}

}  // namespace latchkey::detail
