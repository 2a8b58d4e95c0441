#include <machine/client_machine.hpp>

#include <machine/context.hpp>
#include <machine/fleet.hpp>
#include <machine/name_machine.hpp>
#include <machine/takeover.hpp>
#include <machine/transfer.hpp>

#include <algorithm>
#include <cerrno>

namespace latchkey::detail {

namespace {

// Belongs to no owner.
bool is_plain(operation const& call) {
  using type = operation::type;
  return call.what == type::query || call.what == type::force_unlock || call.what == type::connect;
}

}  // namespace

struct client_machine::impl final : fleet_user, plain_calls_user {
  impl(config const& settings, identity who)
      : shared(settings),
        servers(shared,
                {{who.username, who.password, who.database, who.address, {}},
                 {who.sentinels, who.master, who.sentinel_username, who.sentinel_password},
                 {who.nodes, who.username, who.password, who.by_name}},
                plain, *this) {
    shared.client_id = std::move(who.client_id);
    shared.random_state = who.seed;
    shared.time_of_day = std::move(who.time_of_day);
    shared.may_move = servers.may_change();
  }

  ~impl() {
    shared.out = &unheard;
    for (auto const& name : names) takeover::end(*name);  // servers go before names
    shared.timers.clear();
  }

  // Sets what the machines see of the outside for one step.
  impl& at(instant now, actions& out) {
    shared.now = now;
    shared.out = &out;
    out.turn = out.turn || shared.at == context::stage::closing;
    return *this;
  }

  name_machine& of(operation const& call) { return of(*call.which, call.name); }
  name_machine& of(kind const& which, std::string_view name) {
    if (name_machine* const found = known(which, name)) return *found;
    if (names.size() >= sweep_at) {  // names that nobody uses are kept for their next use, but not for ever
      latest = nullptr;
      std::erase_if(names, [](auto const& machine) { return machine->idle(); });
      sweep_at = 2 * names.size() + 1'024;
    }
    note_script(which.script_for(ask::acquire));
    if (which.rules().takes) note_script(which.script_for(ask::release));
    auto const found = names.find(name);
    name_machine* const namesake = found == names.end() ? nullptr : &**found;
    name_machine& made = **names.emplace(shared, servers.at(name), which, name).first;
    if (namesake) made.meet(*namesake);
    return made;
  }

  void note_script(script const& script) {
    if (std::find(shared.scripts.begin(), shared.scripts.end(), &script) == shared.scripts.end())
      shared.scripts.push_back(&script);
  }

  bool refuses(operation const& call) const {
    return shared.closed() || (shared.at == context::stage::closing && !call.goes_on());
  }

  // Nobody is left who could release anything.
  bool left_alone() const { return shared.at == context::stage::closing && shared.shown == 0 && shared.under_way == 0; }

  void end() {
    if (shared.closed()) return;
    for (auto const& name : names) name->give_up_calls();  // some end holds, which are then not left
    shared.at = context::stage::closed;
    shared.timers.drop(closing);
    forget_plain_calls();
    for (auto const& name : names) name->leave();
    servers.each_home([](home& one) { one.requests.forget_renewals(); });
    shared.out->turn = true;
  }

  name_machine* known(kind const& which, std::string_view name) const {
    if (latest && latest->name() == name && latest->which().same_as(which)) return latest;
    auto found = names.find(name_view{&which, name});
    return found == names.end() ? nullptr : latest = &**found;
  }

  void trouble(home const& at, error_code const& why, std::string_view text, bool transient) override {
    for (auto const& name : names)
      if (name->at_ == &at) name->trouble(why, text, transient);
  }

  // Kinds that exclude each other keep the same key.
  template <class Tell>
  void tell_exclusive(std::string_view name, Tell const& tell) {
    auto const first = names.find(name);
    if (first == names.end()) return;
    name_machine* machine = &**first;
    do {
      if (machine->which().rules().exclusive) tell(*machine);
      machine = &machine->next();
    } while (machine != &**first);
  }

  void forced(operation const& call, instant sent) override {
    tell_exclusive(call.name, [&](name_machine& name) { name.forced(call, sent); });
  }

  void forces(operation const& call) override {
    tell_exclusive(call.name, [](name_machine& name) { name.ask_after_holder(); });
  }

  home& home_of(operation const& call) override {
    return call.what == operation::type::connect ? servers.anywhere() : servers.at(call.name);
  }

  void forget(operation& call) override { servers.forget(call); }

  void forget_plain_calls() {
    std::vector<operation*> calls;
    plain.collect(calls);
    servers.collect(calls);
    for (operation* call : calls) plain.expire(*call, errc::closed);
  }

  std::uint64_t shown_as(operation const& call) const override {
    name_machine const* const found = known(*call.which, call.name);
    return found ? found->shown_as(call.owner) : call.owner;
  }

  void correct(operation& query) const override {
    if (name_machine const* const found = known(*query.which, query.name)) found->correct(query);
  }

  bool needs_server() const override {
    if (!servers.idle()) return true;
    return !shared.closed() && (shared.counters.held > 0 || shared.counters.waiting > 0);
  }

  void moved(home& at) override {
    if (shared.closed()) return;
    for (auto const& name : names)
      if (name->at_ == &at || at.passing.has(name->name())) takeover::look_after_holds(*name);
    release_again(shared.released.at(at));
  }

  void move_names(std::function<home&(std::string_view)> const& where) override {
    for (auto const& name : names)
      if (home& to = where(name->name()); &to != name->at_) takeover::move(*name, to);
    // The node that they leave may have been elected again, and nobody says so any more.
    auto const elsewhere = shared.released.move(where);
    if (!shared.closed()) release_again(elsewhere);
  }

  void release_again(std::vector<recent_releases::entry> const& all) {
    for (auto const& entry : all) takeover::release_again(of(*entry.which, entry.name), entry);
  }

  bool any_name_at(home const& at) const override {
    return std::any_of(names.begin(), names.end(), [&](auto const& name) { return name->at_ == &at; });
  }

  // What was made for a call that does not begin.
  void unprepare(operation const& call) const noexcept {
    if (name_machine* const found = known(*call.which, call.name)) found->unprepare(call.owner);
  }

  // Of a bundle of which one has to wait here that one begins alone: what the others were granted meanwhile would only
  // be given back, and be in the way of whoever has that one.
  std::span<operation* const> not_untried(std::span<operation* const> calls) {
    auto const stays = std::find_if(calls.begin(), calls.end(), [&](operation const* call) {
      if (call->bundle == 0 || refuses(*call)) return false;
      name_machine* const name = known(*call->which, call->name);
      return name && name->keeps_back(*call);
    });
    if (stays == calls.end() || calls.size() == 1) return calls;
    for (operation* const call : calls) {
      if (call == *stays) continue;
      ++shared.under_way;
      call->untried = true;
      shared.complete(*call);
      unprepare(*call);
    }
    return calls.subspan(static_cast<std::size_t>(stays - calls.begin()), 1);
  }

  // Whose lane it has taken; others have `taken` before. A lane takes one script call.
  session* start(operation& call, bool may_borrow, session* taken) {
    owner_state* const ready = std::exchange(prepared, nullptr);
    ++shared.under_way;
    if (refuses(call)) {
      call.error = errc::closed;
      shared.complete(call);
      return nullptr;
    }
    name_machine* const name = is_plain(call) ? nullptr : ready ? &ready->of : &of(call);
    session* const idle = may_borrow ? servers.idle_lane(name ? *name->at_ : home_of(call)) : nullptr;
    std::size_t const before = shared.lane_records.size();
    bool const room = !taken || (taken == idle && name && !shared.lane_plain && before < most_bundled);
    shared.lane_offered = idle && room;
    name ? name->start(call, ready) : start_plain(call);
    shared.lane_offered = false;
    return shared.lane_plain || shared.lane_records.size() > before ? idle : nullptr;
  }

  void start_plain(operation& call) {
    call.where = operation::place::plain;
    if (call.what == operation::type::connect) {
      plain.connect_begins();
      servers.want_direct(home_of(call));
      shared.out->turn = true;
    }
    if (call.what == operation::type::query && call.owner != 0)
      if (name_machine const* const found = known(*call.which, call.name)) transfer::name_adopted(*found, call);
    // A force-unlock leaves by the shared connection: what its message wakes tries there, behind it.
    if (shared.lane_offered && call.what == operation::type::query) {
      shared.lane_offered = false;
      shared.lane_plain = &call;
      return;
    }
    plain.again(call);
    if (call.self_timed || call.deadline == never) return;
    call.expiry.what = timer_node::type::operation;
    call.expiry.of = &call;
    shared.timers.set(call.expiry, call.deadline);
  }

  void expire(operation& call) {
    if (call.where == operation::place::idle) return;
    if (call.where == operation::place::plain) return plain.expire(call);
    call.of_owner->of.expire(call);
  }

  template <class A>
  static A& owner_of(timed& node) {
    return *static_cast<A*>(static_cast<timer_node&>(node).of);
  }

  void due(timed& what) {
    using type = timed::type;
    switch (what.what) {
      case type::hold: return static_cast<hold&>(what).of->of.on_hold_deadline(static_cast<hold&>(what));
      case type::operation: return expire(owner_of<operation>(what));
      case type::hint: return owner_of<shared_channel_waiters>(what).on_hint();
      case type::own_hint: return owner_of<own_channel>(what).on_hint();
      case type::linger: return owner_of<shared_channel_waiters>(what).on_linger();
      case type::turn: return owner_of<name_machine>(what).on_turn_due();
      case type::link: return servers.on_link_timer(owner_of<link>(what));
      case type::session: shared.out->turn = true; return;
      case type::scout: return servers.on_scout_timer();
      case type::watchdog: return owner_of<watchdog>(what).tick();
      case type::closing: return end();
    }
  }

  actions unheard;  // what the end itself would ask for
  context shared;
  // Goes after the lists below, in which its owners and names may still stand.
  name_set names;
  mutable name_machine* latest = nullptr;  // that was looked for: one call after the other looks for the same
  owner_state* prepared = nullptr;         // of the only call that starts next
  plain_calls plain{shared, *this};
  fleet servers;
  timer_node closing;  // when leases have had their time
  std::size_t sweep_at = 1'024;
};

client_machine::client_machine(config const& settings, identity who)
    : impl_(std::make_unique<impl>(settings, std::move(who))) {}

client_machine::~client_machine() = default;

void client_machine::prepare(operation const& call, actions& out) {
  out.completed.reserve(out.completed.size() + 1);
  impl_->shared.lane_records.reserve(most_bundled);
  impl_->prepared = is_plain(call) || impl_->refuses(call) ? nullptr : &impl_->of(call).prepare(call);
}

void client_machine::unprepare(operation const& call) noexcept {
  impl_->prepared = nullptr;
  impl_->unprepare(call);
}

std::uint32_t client_machine::start(std::span<operation* const> calls, bool may_borrow, instant now, actions& out) {
  auto& me = impl_->at(now, out);
  context& shared = me.shared;
  shared.lane_plain = nullptr;
  if (calls.size() > 1) me.prepared = nullptr;  // the first may end what was found for another
  session* lane = nullptr;
  for (operation* const call : me.not_untried(calls))
    if (session* const taken = me.start(*call, may_borrow, lane)) lane = taken;
  if (!lane) return 0;
  if (shared.lane_plain)
    lane->lend_to(*shared.lane_plain);
  else
    lane->lend_to(shared.lane_records);
  shared.lane_records.clear();
  return lane->lane_serial();
}

void client_machine::cancel(operation& call, instant now, actions& out) {
  impl_->at(now, out);
  if (call.where == operation::place::plain && call.what == operation::type::connect)
    impl_->plain.expire(call, error_code(ECANCELED, boost::system::system_category()));
  else if (call.where != operation::place::idle && call.what == operation::type::acquire)
    call.of_owner->of.cancel(call);
}

void client_machine::expire(operation& call, instant now, actions& out) { impl_->at(now, out).expire(call); }

void client_machine::drop(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold, instant now,
                          actions& out) {
  impl_->at(now, out);
  if (name_machine* found = impl_->known(which, name)) found->drop(owner, hold);
}

void client_machine::unlink(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  if (name_machine* found = impl_->known(which, name)) found->unlink(owner, hold);
}

void client_machine::renew_no_longer(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  if (name_machine* const found = impl_->known(which, name)) found->renew_no_longer(owner, hold);
}

detached client_machine::detach(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold,
                                instant now, actions& out) {
  impl_->at(now, out);
  name_machine* const found = impl_->shared.closed() ? nullptr : impl_->known(which, name);
  return found ? transfer::detach(*found, owner, hold) : detached();
}

void client_machine::thread_ended(std::uint64_t owner, instant now, actions& out) {
  if (impl_->at(now, out).shared.closed()) return;
  for (auto const& name : impl_->names) name->thread_ended(owner);
}

bool client_machine::keeps_out(kind const& which, std::string_view name, std::uint64_t owner,
                               unsigned char mode) const {
  name_machine const* found = impl_->known(which, name);
  return found && found->keeps_out(owner, mode);
}

std::uint64_t client_machine::shown_as(kind const& which, std::string_view name, std::uint64_t owner) const {
  name_machine const* found = impl_->known(which, name);
  return found ? found->shown_as(owner) : owner;
}

instant client_machine::trusted_until(kind const& which, std::string_view name, std::uint64_t owner,
                                      hold_id hold) const {
  name_machine const* found = impl_->known(which, name);
  return found ? found->trusted_until(owner, hold) : instant{};
}

std::string& client_machine::lane_bytes(std::uint32_t serial) { return impl_->servers.lender_of(serial)->lane_bytes(); }

client_machine::lane_next client_machine::lane_answer(std::uint32_t serial, reply const& answer, instant now,
                                                      actions& out) {
  auto& me = impl_->at(now, out);
  session* const lender = me.servers.lender_of(serial);
  if (!lender) return lane_next::taken;
  bool const again = lender->lane_answer(answer);
  if (!me.servers.idle() || (me.shared.counters.held > 0 && me.servers.guide_asleep())) out.turn = true;
  return again ? lane_next::send_again : lane_next::done;
}

void client_machine::lane_failed(std::uint32_t serial, error_code const& why, instant now, actions& out) {
  if (session* const lender = impl_->at(now, out).servers.lender_of(serial)) lender->lane_failed(why);
}

void client_machine::turn(instant now, io_actions& io, actions& out) {
  bool const another = out.turn;
  auto& me = impl_->at(now, out);
  out.turn = another;  // this is the one that every step asks for while the client closes
  if (me.left_alone()) me.end();
  me.servers.turn(io);
}

void client_machine::opened(std::uint32_t serial, instant now, actions& out) {
  impl_->at(now, out).servers.opened(serial);
}

void client_machine::open_failed(std::uint32_t serial, error_code const& why, std::string_view text, instant now,
                                 actions& out) {
  impl_->at(now, out).servers.open_failed(serial, why, text);
}

void client_machine::unreachable(std::string_view text, instant now, actions& out) {
  auto& me = impl_->at(now, out);
  me.shared.note(event_type::connect_failed, {}, 0, errc::connect_failed, text);
  me.servers.tell_all(errc::connect_failed, text, false);
  if (me.shared.at == context::stage::closing) me.end();  // nothing can be released, and no timer tells when to stop
}

void client_machine::received(std::uint32_t serial, std::string_view bytes, instant now, actions& out) {
  impl_->at(now, out).servers.received(serial, bytes);
}

void client_machine::broken(std::uint32_t serial, error_code const& why, instant now, actions& out) {
  impl_->at(now, out).servers.broken(serial, why);
}

void client_machine::time(instant now, actions& out) {
  auto& me = impl_->at(now, out);
  while (timed* node = me.shared.timers.take_due(now)) me.due(*node);
}

void client_machine::hurry(instant now, actions& out) { impl_->at(now, out).servers.hurry(); }

void client_machine::doubt_holds(instant now, actions& out) {
  impl_->at(now, out).servers.each_home([](home& one) { one.renewals.want_all_now(); });
}

// A renewal moves the end of its hold, and leaves the timer where it stood: of holds that were taken at different
// moments each would wake the client once in a lease, for nothing.
instant client_machine::wake_at() const {
  auto& timers = impl_->shared.timers;
  for (timed* first = timers.front(); first && first->what == timed::type::hold; first = timers.front()) {
    instant const deadline = static_cast<hold const*>(first)->deadline;
    if (first->at == deadline) break;
    timers.set(*first, deadline);
  }
  return timers.first();
}

void client_machine::close(std::uint64_t closer, instant now, actions& out) {
  auto& me = impl_->at(now, out);
  auto& shared = me.shared;
  if (shared.closed()) return;
  if (std::exchange(shared.at, context::stage::closing) == context::stage::open) {
    // What is released at the last moment has time to reach the server.
    milliseconds const most = shared.settings.close_timeout;
    me.closing.what = timer_node::type::closing;
    shared.timers.set(me.closing, after(now, most - std::min(most / 5, milliseconds(200))));
    me.forget_plain_calls();
  }
  for (auto const& name : me.names) name->close(closer);
  if (me.left_alone()) me.end();
  out.turn = true;
}

void client_machine::await_lease(int more, instant now, actions& out) {
  auto& shared = impl_->at(now, out).shared;
  shared.shown = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(shared.shown) + more);
}

void client_machine::close_now(instant now, actions& out) {
  close(0, now, out);
  impl_->end();
}

bool client_machine::closed() const { return impl_->shared.closed(); }

bool client_machine::quiet() const { return impl_->servers.quiet(); }

bool client_machine::settled(instant now) const { return impl_->servers.settled() && wake_at() > now; }

bool client_machine::idle() const {
  return impl_->servers.idle() && impl_->shared.lost_holds.empty() &&
         std::all_of(impl_->names.begin(), impl_->names.end(), [](auto const& name) { return name->idle(); });
}

void client_machine::snapshot(stats& out) const {
  out = impl_->shared.counters;
  out.kinds.assign(impl_->shared.by_kind.begin(), impl_->shared.by_kind.end());
  impl_->servers.snapshot(out.nodes);
}

}  // namespace latchkey::detail
