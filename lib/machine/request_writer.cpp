#include <machine/request_writer.hpp>

#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/watchdog.hpp>
#include <wire/cluster.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_items = most_bundled;  // of one script call: no call keeps the server busy for long
constexpr std::size_t most_unanswered = 256;      // calls on one connection: the rest waits its turn
constexpr std::size_t long_line = most_items;

// Do both leave in one bundle? Of a bundle of which only one is left that one is an ordinary acquire.
bool bundled(owner_state const& state, owner_state const& other) {
  script const* const text = state.of.which().acquire_all();
  return text && state.ask_->bundle() != 0 && state.ask_->bundle() == other.ask_->bundle() &&
         text == other.of.which().acquire_all();
}

script const& script_of(kind const& which, item const& asked) {
  return asked.what == ask::command ? which.command_script(asked.command) : which.script_for(asked.what);
}

detour const& detour_of(owner_state const& state) { return state.ask_->sent_on; }
detour const& detour_of(renewal const& renewal) { return renewal.sent_on; }
std::string_view name_of(owner_state const& state) { return state.of.name(); }
std::string_view name_of(renewal const& renewal) { return renewal.of->of.name(); }

// A call to a cluster may name one slot only. What was sent on, or told to come again while its slot moves, leaves with
// its own name alone: of keys at both ends of the way no server runs anything.
template <class Request>
bool one_call(Request const& request, Request const& other) {
  bool const fresh = detour_of(request).times() == 0;
  if (fresh != (detour_of(other).times() == 0)) return false;
  return fresh ? hashed_part(name_of(request)) == hashed_part(name_of(other)) : name_of(request) == name_of(other);
}

bool leaves_in(sent_call const& call, owner_state const& other) {
  owner_state const& first = *call.owners.front();
  return call.owners.size() < most_items && other.ask_->what == call.asked && &other.of.which() == call.which &&
         other.ask_->command == first.ask_->command && one_call(first, other);
}

// Looks behind the oldest request, which leads a call, for others of its hash tag that may leave in it. As none leads
// before its turn, none of them is overtaken for ever.
template <class List>
class companions {
 public:
  explicit companions(List& list) : list_(list), at_(list.end()) {}

  template <class Request>
  void lead(Request const& first) {
    auto const name = name_of(first);
    looks_ = hashed_part(name).size() < name.size() && detour_of(first).times() == 0 ? most_looks : 0;
    at_ = list_.begin();
  }
  // Else the oldest.
  template <class Fits>
  typename List::iterator next(Fits const& fits) {
    for (; looks_ > 0 && at_ != list_.end(); ++at_, --looks_)
      if (fits(*at_)) return at_++;
    looks_ = 0;
    return list_.begin();
  }

 private:
  static constexpr std::size_t most_looks = 1'000;
  List& list_;
  typename List::iterator at_;
  std::size_t looks_ = 0;
};

bool leaves_line(sent_call const& call) { return call.what == sent_call::type::script && call.asked == ask::leave; }

// Each call that leaves a line walks it, for milliseconds where a thousand wait: of a long one those who give up
// meanwhile leave together, in the next.
bool line_is_walked(owner_state const& leaves, link const& to) {
  return leaves.of.queue().size() >= long_line &&
         std::any_of(to.unanswered.begin(), to.unanswered.end(), [&](sent_call const& call) {
           return leaves_line(call) && &call.owners.front()->of == &leaves.of;
         });
}

// What does not leave in this turn.
template <class List, class Stays>
List taken_out(List& list, Stays const& stays) {
  List made;
  for (auto it = list.begin(); it != list.end();) {
    auto& waiting = *it++;
    if (!stays(waiting)) continue;
    list.erase(list.iterator_to(waiting));
    made.push_back(waiting);
  }
  return made;
}

// Two for each item.
void make_room(std::vector<std::string>& fields, std::size_t items) {
  if (fields.size() < 2 * items) fields.resize(2 * items);
}

}  // namespace

// Whoever holds it already is not kept waiting by a quarantine.
bool request_writer::held_back(owner_state const& state) const {
  request const& asked = *state.ask_;
  bool const barred = shared_.barred.has(state);
  if (asked.what == ask::extend) return barred;
  if (asked.what == ask::hand_off) return !at_.passes_on(asked, shared_.now);
  if (asked.what != ask::acquire) return false;
  if (barred && !asked.repeated) return true;
  return state.live() == 0 && shared_.now < at_.quarantined_until;
}

void request_writer::wake_later() {
  for (instant const end : {at_.quarantined_until, at_.requests.rests_until()})
    if (end > shared_.now) shared_.timers.set_lazily(timer_, end);
}

// Behind a WAIT it would only stand on the server instead of here.
bool request_writer::may_send(link const& to) const {
  return !paused() && !to.waits && to.unanswered.size() < most_unanswered;
}

void request_writer::send(outbox& from, link& to) {
  if (!may_send(to)) return;
  send_told(from, to);
  if (at_.renewals.wants_all()) {
    at_.renewals.catch_up();
    send_renewals(from, to);
    if (at_.renewals.wants_all()) return;
  }
  for (unsigned order : {outbox::releases, outbox::hand_offs}) send_groups(from, order, to);
  send_renewals(from, to);
  for (unsigned order : {outbox::extensions, outbox::acquires}) send_groups(from, order, to);
  send_plain(from, to);
}

outbox::owner_list request_writer::those_held_back(outbox::owner_list& list, bool are_releases, link const& to) const {
  bool const some_leave = are_releases && std::any_of(to.unanswered.begin(), to.unanswered.end(), leaves_line);
  bool const some_wait = some_leave || !shared_.barred.empty() ||
                         shared_.now < std::max(at_.quarantined_until, at_.requests.rests_until());
  if (!some_wait) return {};
  return taken_out(list, [&](owner_state const& state) {
    return held_back(state) || at_.requests.rests(state.ask_->sent_on, shared_.now) ||
           (some_leave && state.ask_->what == ask::leave && line_is_walked(state, to));
  });
}

void request_writer::send_groups(outbox& from, unsigned order, link& to) {
  auto& list = from.of(static_cast<outbox::order>(order));
  if (list.empty()) return;
  outbox::owner_list later = those_held_back(list, order == outbox::releases, to);
  companions search(list);
  items_.clear();
  make_room(item_fields_, most_items + 1);  // never moved: the first owner state of the next call stands here, too
  sent_call call{.what = sent_call::type::script};
  auto const flush = [&] {
    if (!call.owners.empty()) write_call(to, std::move(call), items_);
    call = {.what = sent_call::type::script};
    items_.clear();
  };
  while (!list.empty() && may_send(to)) {
    auto const next = search.next([&](owner_state const& other) { return leaves_in(call, other); });
    owner_state& state = *next;
    list.erase(next);
    bool const alone = state.ask_.pending().sent_on.take_asking();
    bool const other_slot = at_.in_cluster && !call.owners.empty() && !one_call(*call.owners.front(), state);
    bool const joins = !call.owners.empty() && !at_.in_cluster && bundled(*call.owners.front(), state);
    bool const in_bundle = joins || (!list.empty() && !at_.in_cluster && bundled(state, list.front()));
    auto* fields = &item_fields_[2 * items_.size()];
    item asked;
    state.of.prepare(state, asked, fields[0], fields[1]);
    script const& text = in_bundle ? *state.of.which().acquire_all() : script_of(state.of.which(), asked);
    bool const other_bundle = in_bundle && !joins;
    bool const apart = alone || other_slot || other_bundle;
    if (!call.owners.empty() && (call.text != &text || apart || call.owners.size() == most_items)) {
      flush();
      std::swap_ranges(fields, fields + 2, item_fields_.data());
      asked.field = item_fields_[0];
      if (asked.what == ask::hand_off) asked.to_field = item_fields_[1];
    }
    if (at_.in_cluster && call.owners.empty()) search.lead(state);
    call.text = &text;
    call.which = &state.of.which();
    call.asked = asked.what;
    call.bundled = in_bundle;
    call.owners.push_back(&state);
    items_.push_back(asked);
    state.ask_.pending().where = request::place::shared;
    if (state.ask_->partner) state.ask_->partner->ask_.pending().where = request::place::shared;
    if (!alone) continue;
    write_asking(to);
    flush();
  }
  flush();
  if (!later.empty()) wake_later();
  list.splice(list.end(), later);
}

void request_writer::send_renewals(outbox& from, link& to) {
  auto& list = from.renewals();
  auto const batch = static_cast<std::size_t>(shared_.settings.lock_watchdog_batch_size);
  outbox::renewal_list later;
  if (shared_.now < at_.requests.rests_until())
    later =
        taken_out(list, [this](renewal const& renewal) { return at_.requests.rests(renewal.sent_on, shared_.now); });
  while (!list.empty() && may_send(to)) {
    companions search(list);
    std::vector<item> items;
    fields_.clear();
    field_ends_.clear();
    sent_call call{.what = sent_call::type::renewals, .asked = ask::renew};
    while (!list.empty() && call.renewals.size() < batch) {
      auto const next = search.next([&](renewal const& other) {
        return call.text == &other.of->of.which().script_for(ask::renew) && one_call(*call.renewals.front(), other);
      });
      renewal& renewal = *next;
      kind const& which = renewal.of->of.which();
      script const& text = which.script_for(ask::renew);
      if (call.text && call.text != &text) break;
      if (!call.renewals.empty() && at_.in_cluster &&
          (renewal.sent_on.asking() || !one_call(*call.renewals.front(), renewal)))
        break;
      bool const alone = renewal.sent_on.take_asking();
      if (alone) write_asking(to);
      list.erase(next);
      if (at_.in_cluster && call.renewals.empty()) search.lead(renewal);
      call.text = &text;
      call.which = &which;
      call.renewals.push_back(&renewal);
      renewal.sent = shared_.now;
      renewal.stale = false;
      renewal.of->of.add_field(fields_, *renewal.of, renewal.mode);
      field_ends_.push_back(fields_.size());
      // A hold may end before anything is sent: PEXPIRE 0 would delete the key.
      auto const needs = renewal.of->longest(renewal.mode, shared_.now, shared_.settings);
      auto const most = std::max(milliseconds(needs), shared_.settings.lock_watchdog_timeout);
      renewal.of->lasts_until(after(shared_.now, shared_.settings.timeout + most));
      items.push_back({.what = ask::renew,
                       .mode = renewal.mode,
                       .name = renewal.of->of.name(),
                       .lease = std::max<std::int64_t>(needs, 1)});
      if (alone) break;
    }
    std::size_t begin = 0;
    for (std::size_t i = 0; i < items.size(); begin = field_ends_[i++])
      items[i].field = std::string_view(fields_).substr(begin, field_ends_[i] - begin);
    write_call(to, std::move(call), items);
  }
  if (!later.empty()) wake_later();
  list.splice(list.end(), later);
}

void request_writer::send_plain(outbox& from, link& to) {
  auto& list = from.plain();
  for (auto it = list.begin(); may_send(to) && it != list.end();) {
    operation& plain = *it++;
    if (at_.requests.rests(plain.sent_on, shared_.now)) {
      wake_later();
      continue;
    }
    list.erase(list.iterator_to(plain));
    if (plain.sent_on.take_asking()) write_asking(to);
    // A connect means a server that takes writes: one that has become a replica would run its script.
    if (plain.what == operation::type::connect && to.since < plain.started) {
      command_.say("ROLE");
      to.write(shared_, command_, {.what = sent_call::type::role});
    }
    sent_call call{.what = sent_call::type::plain, .plain = &plain};
    plain_words(call);
    to.write(shared_, command_, std::move(call));
  }
}

void request_writer::send_told(outbox& from, link& to) {
  auto const channels = from.take_told();
  if (!at_.sharded_channels) return;  // others reach whoever subscribed anywhere
  for (auto const& channel : channels) {
    command_.say("SPUBLISH", channel, freed_message);
    to.write(shared_, command_, {.what = sent_call::type::tells});
  }
}

// What follows is asked of a server that does not have the slot yet.
void request_writer::write_asking(link& to) {
  command_.say("ASKING");
  to.write(shared_, command_, {.what = sent_call::type::asking});
}

// --- words ---

bool request_writer::begin_script(words& command, script const& text) {
  bool const whole = unknown_.erase(&text) > 0;
  command.say(whole ? "EVAL" : "EVALSHA", whole ? text.text() : text.sha());
  ++shared_.counters.scripts;
  return whole;
}

void request_writer::script_words(sent_call& call, std::span<item const> items) {
  call.whole = begin_script(command_, *call.text);
  std::size_t const count_at = command_.size();
  command_.add(std::int64_t{0});
  for (auto const& item : items) call.which->add_keys(item, command_);
  command_[count_at] = std::to_string(command_.size() - count_at - 1);
  for (auto const& item : items) call.which->add_arguments(item, command_);
  if (call.text->publishes()) command_.add(publisher(at_.sharded_channels));
}

void request_writer::plain_words(sent_call& call) {
  operation& plain = *call.plain;
  if (plain.what == operation::type::connect) {
    if (plain.error == errc::connect_failed) {  // perhaps of another node; from here on an answer is missing
      plain.error = {};
      plain.text.clear();
    }
    call.text = &no_keys_script();
    return script_words(call, {});
  }
  plain.unseen = true;
  plain_.sends(plain);
  call.which = plain.which;
  std::string const field = plain.which->field(shared_.client_id, plain_.shown_as(plain), plain.mode);
  item item{.mode = plain.mode, .name = plain.name, .field = field};
  if (plain.what == operation::type::query) {
    if (plain.argument && !has_text(plain.question)) item.field = *plain.argument;
    command_.clear();
    plain.which->add_query(plain.question, item, command_);
    if (plain.question == query::listeners && at_.sharded_channels) command_[1] = "SHARDNUMSUB";
    return;
  }
  call.asked = ask::force_unlock;
  // Of one field alone: a release to nothing compares it first.
  item.what = plain.argument ? ask::release : ask::force_unlock;
  if (plain.argument) item.field = *plain.argument;
  call.text = &plain.which->script_for(item.what);
  script_words(call, {&item, 1});
}

void request_writer::write_call(link& to, sent_call&& call, std::span<item const> items) {
  script_words(call, items);
  to.write(shared_, command_, std::move(call));
}

// --- the direct lane ---

bool request_writer::leave_together(owner_state const& first, owner_state const& other, bool in_cluster) {
  request const& asked = *other.ask_;
  if (asked.what != first.ask_->what || asked.command != first.ask_->command) return false;
  if (in_cluster && !one_call(first, other)) return false;
  bool const in_bundles = !in_cluster && (first.ask_->bundle() != 0 || asked.bundle() != 0);
  return in_bundles ? bundled(first, other) : &first.of.which() == &other.of.which();
}

void request_writer::lend(link& lane, std::span<owner_state* const> all) {
  auto owners = std::move(lane.borrowed.owners);
  owners.assign(all.begin(), all.end());
  lane.borrowed = {.what = sent_call::type::script, .owners = std::move(owners)};
  make_lane_bytes(lane);
}

void request_writer::lend(link& lane, operation& plain) {
  lane.borrowed = {.what = sent_call::type::plain, .plain = &plain};
  make_lane_bytes(lane);
}

void request_writer::make_lane_bytes(link& lane) {
  sent_call& call = lane.borrowed;
  lane.lent = true;
  call.sent = shared_.now;
  if (call.plain) {
    plain_words(call);
  } else if (!call.owners.empty()) {
    prepare_lane(call);
    script_words(call, items_);
  }
  lane_out_.clear();
  append_command(lane_out_, command_);
  ++shared_.counters.commands;
  shared_.counters.bytes_sent += lane_out_.size();
  lane.plan(shared_);
}

// A release that has become a hand-off by now does not leave with other releases, nor they with it.
void request_writer::prepare_lane(sent_call& call) {
  auto& owners = call.owners;
  make_room(item_fields_, owners.size());
  items_.clear();
  std::vector<owner_state*> left_behind;
  std::size_t kept = 0;
  for (owner_state* const state : owners) {
    item asked;
    state->of.prepare(*state, asked, item_fields_[2 * kept], item_fields_[2 * kept + 1]);
    if (kept > 0 && asked.what != items_.front().what) {
      left_behind.push_back(state);
      continue;
    }
    state->ask_.pending().where = request::place::direct;
    if (state->ask_->partner) state->ask_->partner->ask_.pending().where = request::place::direct;
    items_.push_back(asked);
    owners[kept++] = state;
  }
  owners.resize(kept);
  owner_state const& first = *owners.front();
  call.asked = items_.front().what;
  call.which = &first.of.which();
  call.bundled = kept > 1 && call.asked == ask::acquire && !at_.in_cluster && first.ask_->bundle() != 0;
  call.text = call.bundled ? call.which->acquire_all() : &script_of(*call.which, items_.front());
  for (owner_state* const state : left_behind) state->of.not_run(*state, nullptr, {});
}

// Do the borrower's requests still mean what they meant when they were sent? Else the engine goes on with them.
bool request_writer::still_wanted(sent_call const& call) {
  if (call.owners.empty()) return call.plain != nullptr;
  return std::none_of(call.owners.begin(), call.owners.end(), [](owner_state const* state) {
    request const& asked = *state->ask_;
    return asked.abandoned || asked.fix || (asked.partner && asked.partner->ask_->abandoned);
  });
}

bool request_writer::lane_answer(link& lane, reply const& answer) {
  sent_call call = std::exchange(lane.borrowed, {});
  if (call.what == sent_call::type::wait) {
    lane.lent = false;
    lane.heard = shared_.now;
    synced(lane, answer);
    return false;
  }
  bool const no_script = answer.is_error() && classify(answer.text).no_script && call.text && !call.whole;
  if (no_script && still_wanted(call)) {  // nothing ran: EVAL with the text is no repetition
    unknown_.insert(call.text);
    lane.borrowed = std::move(call);
    make_lane_bytes(lane);
    return true;
  }
  lane.heard = shared_.now;
  lane.of_use = lane.of_use || !answer.is_error();
  if (needs_replicas(call, answer)) {  // the borrower asks for them, too
    lane.unsynced.push_back({std::move(call), answer});
    wait_words(lane);
    lane.borrowed = {.what = sent_call::type::wait, .sent = after(shared_.now, shared_.settings.replicas_sync_timeout)};
    lane_out_.clear();
    append_command(lane_out_, command_);
    ++shared_.counters.commands;
    shared_.counters.bytes_sent += lane_out_.size();
    return true;
  }
  lane.lent = false;
  if (call.what == sent_call::type::plain)
    on_plain(call, answer);
  else
    on_script(call, answer);
  call.owners.clear();
  lane.borrowed.owners = std::move(call.owners);  // its memory serves the next one
  return false;
}

}  // namespace latchkey::detail
