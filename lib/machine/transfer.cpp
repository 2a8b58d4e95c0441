#include <machine/transfer.hpp>

#include <machine/name_machine.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

// What is under way for its owner would say how often the owner holds it by now, and so end what it holds no more.
detached transfer::detach(name_machine& from, std::uint64_t owner, hold_id which) {
  owner_state* const state = from.known(owner);
  hold* const held = state ? state->find(which) : nullptr;
  if (!held || !from.holders_.lasts(held)) return {};
  if (state->live() > 1) return {.refused = "its owner holds the lock more than once"};
  if (state->ask_->under_way() || !state->behind.empty() || state->queued > 0)
    return {.refused = "another call of its owner is under way"};
  if (!state->client && state->field != state->owner)
    return {.refused = "it began as a local turn, and the server shows another owner"};
  auto const& client = state->client ? *state->client : from.shared_.client_id;
  detached made{.owner = client + ':' + std::to_string(state->field)};
  from.note(event_type::left_to_lease, owner, {}, {}, from.holders_.rest_of(*held), held->context);
  if (from.tenure_.is_of(*state)) from.tenure_.end();
  unsigned char const mode = held->mode;
  from.holders_.forget(*state, *held);
  from.holders_.stop_renewing(*state, mode);
  from.advance(*state);  // what was owed
  from.tidy(*state);
  // Those who wait here counted on its release.
  from.waiting().new_head();
  from.waiting().wake();
  from.tidy_served();
  return made;
}

namespace {

// Under the owner whose hold is to be adopted.
bool stands_for(owner_state const& state, operation const& call) {
  return state.field == call.field && !state.client == !call.argument &&
         (!call.argument || *state.client == *call.argument);
}

}  // namespace

bool transfer::ends(name_machine& in, operation const& call) {
  return std::any_of(in.owners_.begin(), in.owners_.end(), [&](owner_state const& one) {
    request const& asked = *one.ask_;
    bool const releases = asked.what == ask::release || (asked.what == ask::hand_off && !asked.grantee);
    return one.live() == 0 && releases && asked.under_way() && stands_for(one, call);
  });
}

void transfer::tell(name_machine& into, operation& call) {
  into.note(event_type::granted, call.owner, {}, {}, into.shared_.now - call.started, {});
  call.yes = true;
  into.complete(call);
}

void transfer::adopt(name_machine& into, owner_state& state, operation& call) {
  instant const end = call.value < 0 ? never : into.shared_.trusted_end(call.started, milliseconds(call.value));
  auto const all = into.holders_.all();
  if (std::any_of(all.begin(), all.end(), [&](owner_state const* other) { return stands_for(*other, call); }))
    return into.complete(call, errc::already_held, "this client has adopted it, or never detached it");
  if (name_machine const* const other = into.in_use_elsewhere(state.owner))
    return into.complete(call, errc::already_held,
                         "the owner has this name already as a " + std::string(other->which().rules().name));
  if (into.tenure_.lent(state.owner) || state.field != state.owner)
    return into.complete(call, errc::already_held, "the server shows another hold of this client under that owner");
  if (end <= into.shared_.now) return into.complete(call);  // `yes` stays false
  state.field = call.field;
  state.client = call.argument ? std::make_unique<std::string const>(*call.argument) : nullptr;
  state.lasts_until(end == never ? never
                                 : after(end, into.shared_.settings.timeout + into.shared_.settings.clock_margin));
  call.lease = milliseconds(1);  // not the watchdog's
  into.holders_.keep(state, call, call.mode, into.shared_.now, end);
  state.find(call.hold)->adopted = true;
  ++into.shared_.counters.acquired;  // since its end is counted, too
  ++into.tally_.acquired;
  if (end == never) return tell(into, call);
  request asked;
  asked.what = ask::renew;
  asked.mode = call.mode;
  asked.extends = call.hold;
  asked.call = &call;
  call.where = operation::place::trying;
  into.watch_deadline(call);
  into.begin(state, asked);
  into.send(state, !into.active_.release_sent());
}

void transfer::confirmed(name_machine& into, owner_state& state, outcome const& answer) {
  request const was = *state.ask_;
  into.finish(state);
  into.repair_modes(state, was.fix | (was.owes ? 1u << was.mode : 0u));
  if (!was.call) return;
  operation& call = *was.call;
  call.unseen = was.repeated;
  bool const done = answer.what == outcome::type::extended;
  if (done && answer.unsynced)
    into.complete(call, errc::not_synced, answer.text.empty() ? too_few_replicas : answer.text);
  else if (!done && answer.what != outcome::type::absent)
    into.complete(call, error_of(answer), words_of(answer));
  else if (done && into.holders_.lasts(state.find(was.extends)))
    tell(into, call);
  else
    into.complete(call);  // `yes` stays false
}

void transfer::undo(name_machine& in, operation const& call) {
  owner_state& state = *call.of_owner;
  hold* const begun = call.yes || call.hold == 0 ? nullptr : state.find(call.hold);
  if (!begun) return;
  in.holders_.forget(state, *begun);
  in.holders_.stop_renewing(state, call.mode);
  in.waiting().new_head();  // as behind a hold of another client
}

void transfer::name_adopted(name_machine const& of, operation& query) {
  owner_state const* const state = of.known(query.owner);
  if (state && state->client) query.argument = std::make_shared<std::string const>(of.field_of(*state, query.mode));
}

}  // namespace latchkey::detail
