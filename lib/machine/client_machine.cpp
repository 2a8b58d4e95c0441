#include <machine/client_machine.hpp>

#include <machine/context.hpp>
#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/session.hpp>
#include <machine/subscriptions.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <unordered_set>

namespace latchkey::detail {

namespace {

struct name_view {
  kind const* which;
  std::string_view name;
};

name_view view_of(name_view const& key) { return key; }
name_view view_of(std::unique_ptr<name_machine> const& of) { return {&of->which(), of->name()}; }

// A machine knows its name: the map of them has no second copy.
struct name_hash {
  using is_transparent = void;
  template <class A>
  std::size_t operator()(A const& of) const {
    auto const key = view_of(of);
    return std::hash<std::string_view>{}(key.name) ^ std::hash<void const*>{}(key.which);
  }
};

struct name_equal {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(A const& one, B const& other) const {
    auto const a = view_of(one), b = view_of(other);
    return a.which == b.which && a.name == b.name;
  }
};

}  // namespace

struct client_machine::impl final : session_user {
  impl(config const& settings, identity who)
      : shared(settings),
        requests(shared),
        channels(shared),
        renewals(shared),
        server(shared, {who.username, who.password, who.database}, *this) {
    shared.client_id = std::move(who.client_id);
    shared.random_state = who.seed;
    shared.requests = &requests;
    shared.channels = &channels;
    shared.renewals = &renewals;
  }

  ~impl() {
    shared.timers.clear();
    shared.lost_holds.clear();
    shared.under_way.clear();
  }

  // Sets what the machines see of the outside for one step.
  impl& at(instant now, actions& out) {
    shared.now = now;
    shared.out = &out;
    return *this;
  }

  name_machine& of(kind const& which, std::string_view name) {
    if (auto found = names.find(name_view{&which, name}); found != names.end()) return **found;
    if (names.size() >= sweep_at) {  // names that nobody uses are kept for their next use, but not for ever
      std::erase_if(names, [](auto const& one) { return one->idle(); });
      sweep_at = 2 * names.size() + 1'024;
    }
    auto made = std::make_unique<name_machine>(shared, which, std::string(name));
    if (std::find(kinds_.begin(), kinds_.end(), &which) == kinds_.end()) kinds_.push_back(&which);
    for (kind const* other : kinds_)
      if (name_machine* const namesake = known(*other, name)) {
        made->meet(*namesake);
        break;
      }
    return **names.insert(std::move(made)).first;
  }

  name_machine* known(kind const& which, std::string_view name) const {
    auto found = names.find(name_view{&which, name});
    return found == names.end() ? nullptr : found->get();
  }

  void trouble(error_code const& why, std::string_view text, bool transient) override {
    for (auto const& name : names) name->trouble(why, text, transient);
    std::vector<operation*> plain;
    for (auto& call : requests.plain()) plain.push_back(&call);
    for (operation* call : plain) {
      if (transient && ++call->attempts <= static_cast<unsigned>(shared.settings.retry_attempts)) continue;
      call->text = text;
      server.expire_plain(*call, why);
    }
  }

  bool needs_server() const override {
    if (!requests.empty()) return true;
    return !shared.closed && (shared.counters.held > 0 || shared.counters.waiting > 0);
  }

  std::span<kind const* const> kinds() const override { return kinds_; }

  void start_plain(operation& call) {
    call.where = operation::place::plain;
    if (shared.lane_offered) {
      shared.lane_offered = false;
      shared.lane_plain = &call;
      return;
    }
    requests.add(call);
    if (call.self_timed || call.deadline == never) return;
    call.expiry.what = timer_node::type::operation;
    call.expiry.of = &call;
    shared.timers.set(call.expiry, call.deadline);
  }

  void expire(operation& call) {
    if (call.where == operation::place::idle) return;
    if (call.where == operation::place::plain) return server.expire_plain(call, errc::timeout);
    call.owner_record->of.expire(call);
  }

  void due(timer_node& node) {
    switch (node.what) {
      case timer_node::type::operation: return expire(*static_cast<operation*>(node.of));
      case timer_node::type::hold: {
        hold& late = *static_cast<hold*>(node.of);
        return late.of->of.on_hold_deadline(late);
      }
      case timer_node::type::hint: return static_cast<name_machine*>(node.of)->on_hint();
      case timer_node::type::own_hint: {
        record& waits = *static_cast<record*>(node.of);
        return waits.of.on_own_hint(waits);
      }
      case timer_node::type::linger: return static_cast<name_machine*>(node.of)->on_linger();
      case timer_node::type::link: return server.on_link_timer(*static_cast<link*>(node.of));
      case timer_node::type::session: return server.on_timer();
      case timer_node::type::watchdog: return renewals.tick();
    }
  }

  context shared;
  // Goes after the lists below, in which its records and names may still stand.
  std::unordered_set<std::unique_ptr<name_machine>, name_hash, name_equal> names;
  std::vector<kind const*> kinds_;
  outbox requests;
  subscriptions channels;
  watchdog renewals;
  session server;
  std::size_t sweep_at = 1'024;
};

client_machine::client_machine(config const& settings, identity who)
    : impl_(std::make_unique<impl>(settings, std::move(who))) {}

client_machine::~client_machine() = default;

void client_machine::prepare(operation const& call, actions& out) {
  out.completed.reserve(out.completed.size() + 1);
  bool const plain = call.what == operation::type::query || call.what == operation::type::force_unlock;
  if (!plain && !impl_->shared.closed) impl_->of(*call.which, call.name).prepare(call.owner);
}

void client_machine::unprepare(operation const& call) noexcept {
  if (name_machine* const found = impl_->shared.broken ? nullptr : impl_->known(*call.which, call.name))
    found->unprepare(call.owner);
}

void client_machine::enlist(operation& call) noexcept { impl_->shared.under_way.push_back(call); }

bool client_machine::start(operation& call, bool may_borrow, instant now, actions& out) {
  auto& me = impl_->at(now, out);
  context& shared = me.shared;
  // One that starts by itself need not be enlisted before.
  if (!call.under_way_hook::is_linked()) shared.under_way.push_back(call);
  if (shared.closed) {
    call.error = errc::closed;
    shared.complete(call);
    return false;
  }
  if (may_borrow) me.server.want_direct();
  shared.lane_offered = may_borrow && me.server.direct_idle();
  shared.lane_record = nullptr;
  shared.lane_plain = nullptr;
  if (call.what == operation::type::query || call.what == operation::type::force_unlock)
    me.start_plain(call);
  else
    me.of(*call.which, call.name).start(call);
  shared.lane_offered = false;
  if (shared.lane_record) me.server.lend_to(*shared.lane_record);
  if (shared.lane_plain) me.server.lend_to(*shared.lane_plain);
  return shared.lane_record || shared.lane_plain;
}

void client_machine::cancel(operation& call, instant now, actions& out) {
  if (impl_->at(now, out).shared.broken) return;
  if (call.where != operation::place::idle && call.what == operation::type::acquire) call.owner_record->of.cancel(call);
}

void client_machine::expire(operation& call, instant now, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.expire(call);
}

void client_machine::drop(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold, instant now,
                          actions& out) {
  if (impl_->at(now, out).shared.broken) return;
  if (name_machine* found = impl_->known(which, name)) found->drop(owner, hold);
}

void client_machine::unlink(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  if (name_machine* found = impl_->known(which, name)) found->unlink(owner, hold);
}

bool client_machine::holds(kind const& which, std::string_view name, std::uint64_t owner) const {
  name_machine const* found = impl_->shared.broken ? nullptr : impl_->known(which, name);
  return found && found->holds(owner);
}

std::uint32_t client_machine::lane_serial() const { return impl_->server.lane_serial(); }

std::string& client_machine::lane_bytes() { return impl_->server.lane_bytes(); }

client_machine::lane_next client_machine::lane_answer(std::uint32_t serial, reply const& answer, instant now,
                                                      actions& out) {
  auto& me = impl_->at(now, out);
  if (me.shared.broken || !me.server.lent(serial)) return lane_next::taken;
  bool const again = me.server.lane_answer(answer);
  if (!me.requests.empty()) out.turn = true;
  return again ? lane_next::send_again : lane_next::done;
}

void client_machine::lane_failed(std::uint32_t serial, error_code const& why, instant now, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.lane_failed(serial, why);
}

void client_machine::turn(instant now, io_actions& io, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.turn(io);
}

void client_machine::opened(std::uint32_t serial, instant now, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.opened(serial);
}

void client_machine::open_failed(std::uint32_t serial, error_code const& why, std::string_view text, instant now,
                                 actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.open_failed(serial, why, text);
}

void client_machine::unreachable(std::string_view text, instant now, actions& out) {
  auto& me = impl_->at(now, out);
  if (me.shared.broken) return;
  me.shared.trouble = text;
  me.shared.note(event_type::connect_failed, {}, 0, errc::connect_failed, text);
  me.trouble(errc::connect_failed, text, false);
}

void client_machine::received(std::uint32_t serial, std::string_view bytes, instant now, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.received(serial, bytes);
}

void client_machine::broken(std::uint32_t serial, error_code const& why, instant now, actions& out) {
  if (auto& me = impl_->at(now, out); !me.shared.broken) me.server.broken(serial, why);
}

void client_machine::time(instant now, actions& out) {
  auto& me = impl_->at(now, out);
  while (timer_node* node = me.shared.timers.take_due(now)) me.due(*node);
}

instant client_machine::wake_at() const { return impl_->shared.timers.first(); }

void client_machine::close(instant now, actions& out) {
  auto& me = impl_->at(now, out);
  if (me.shared.closed) return;
  me.shared.closed = true;
  me.server.forget_plain_calls(errc::closed);
  for (auto const& name : me.names) name->close();
  out.turn = true;
}

bool client_machine::closed() const { return impl_->shared.closed; }

bool client_machine::quiet() const { return impl_->shared.broken || impl_->server.quiet(); }

void client_machine::abandon(actions& out, operation_list& calls) noexcept {
  auto& shared = impl_->shared;
  if (shared.broken) return calls.splice(calls.end(), shared.under_way);
  shared.closed = shared.broken = true;
  shared.timers.clear();
  shared.lost_holds.clear();
  impl_->requests.clear();
  for (auto const& name : impl_->names) name->abandon(out);
  for (auto& call : shared.under_way) call.abandon();
  calls.splice(calls.end(), shared.under_way);
  auto& counted = shared.counters;
  counted.lost += std::exchange(counted.held, 0);
  counted.waiting = counted.unsettled = 0;
  counted.connected = false;
  for (auto& one : shared.by_kind) {
    one.lost += std::exchange(one.held, 0);
    one.waiting = 0;
  }
}

bool client_machine::idle() const {
  return impl_->requests.empty() && impl_->shared.lost_holds.empty() &&
         std::all_of(impl_->names.begin(), impl_->names.end(), [](auto const& one) { return one->idle(); });
}

void client_machine::snapshot(stats& out) const {
  out = impl_->shared.counters;
  out.kinds.assign(impl_->shared.by_kind.begin(), impl_->shared.by_kind.end());
  out.subscriptions = impl_->channels.size();
}

}  // namespace latchkey::detail
