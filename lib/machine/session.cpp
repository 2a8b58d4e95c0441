#include <machine/session.hpp>

#include <algorithm>
#include <system_error>

namespace latchkey::detail {

namespace {

// How the words of a refused connection end.
std::string const& no_process() {
  // Never destroyed: a client's thread may outlast the client, and main().
  static std::string const& the_one = *new std::string(std::make_error_code(std::errc::connection_refused).message());
  return the_one;
}

constexpr unsigned most_soon_lost = 3;  // message connections, before waiters no longer rely on them

}  // namespace

session::session(context& shared, home& at, connections::identity who, shard& of, shard_user& user, plain_calls& plain)
    : shared_(shared),
      at_(at),
      of_(of),
      user_(user),
      links_(shared, at.away, std::move(who), *this, timer_),
      plain_(plain),
      writer_(shared, at, plain, timer_, *this) {
  timer_.what = timer_node::type::session;
  timer_.of = this;
}

session::~session() { shared_.timers.drop(timer_); }

// --- a turn ---

void session::turn(io_actions& io) {
  link& leader = links_.of(role::shared);
  close_if_idle();
  see_to_bars();  // it may have been aside
  if (leader.at == link::state::up) {
    orphans_.send();
    writer_.send_wait(leader);
    writer_.send(at_.requests, leader);
  }
  if (links_.of(role::messages).at == link::state::up) messages_.send();
  links_.open_needed({needed(), direct_wanted_, at_.channels.wanted() || plain_.connecting()}, io);
  bool const waits = !at_.requests.empty() || at_.renewals.wants_all();
  if (writer_.paused() && waits) writer_.wake_after_pause();
  links_.flush(io);
}

// Of a cluster every node may be wanted once; but the last connection of the client stays, for the next lock.
void session::close_if_idle() {
  milliseconds const limit = shared_.settings.idle_connection_timeout;
  if (needed()) wanted_ = shared_.now;
  if (!at_.in_cluster || limit.count() == 0 || !up()) return;
  instant const end = after(wanted_, limit);
  if (end > shared_.now) return shared_.timers.set_lazily(timer_, end);
  if (!links_.settled()) return shared_.timers.set_lazily(timer_, after(shared_.now, limit));
  if (shared_.servers_up > 1) links_.end();
}

// --- the end of its lead ---

void session::retire() {
  aside_ = true;
  aside_since_ = shared_.now;
  links_.abandon();
  plain_.restart_connects();
  orphans_.bar();
  orphans_.let_go(at_);
}

void session::lead() {
  links_.lead();
  aside_ = false;
}

void session::turn_aside(io_actions& io, milliseconds most) {
  see_to_bars();
  if (after(aside_since_, most) <= shared_.now) forgive();
  if (up()) orphans_.send();
  if (orphans_.empty()) links_.end();
  links_.open_needed({!orphans_.empty(), false, false}, io);
  links_.flush(io);
}

void session::see_to_bars() {
  if (!orphans_.barring()) return;
  instant const end = after(aside_since_, shared_.settings.connect_timeout);
  if (end > shared_.now) return shared_.timers.set_lazily(timer_, end);
  orphans_.unbar(links_.who().address);
}

void session::take_debts(session& aside) {
  std::size_t const before = orphans_.size();
  orphans_.take(aside.orphans_, aside.where() == where(), up() ? std::string_view(links_.of(role::shared).id) : "",
                up() ? std::string_view(links_.server().run_id) : "");
  // Owners go on to wait as long as they did.
  if (orphans_.size() > before) aside_since_ = std::max(aside_since_, aside.aside_since_);
}

void session::forgive() {
  orphans_.unbar(links_.who().address);
  orphans_.forgive();
}

// --- answers ---

void session::received(std::uint32_t serial, std::string_view bytes) {
  link* connection = links_.feed(serial, bytes);
  if (!connection && aside_ && orphans_.answered_late(serial))
    shared_.note(event_type::deposed_answer, {}, 0, {}, links_.who().address);
  if (!connection) return;
  for (reply answer; links_.next(*connection, answer);) {
    on_reply(*connection, answer);
    if (connection->serial != serial || connection->at == link::state::down) return;  // it was given up for this answer
  }
  if (aside_ || !at_.requests.empty()) shared_.out->turn = true;
}

void session::on_reply(link& connection, reply& answer) {
  if (connection.of == role::messages && connection.at == link::state::up) {
    messages_.answered(connection, answer);
    return end_connects();
  }
  auto call = links_.answered(connection, answer);
  if (!call) return;
  if (call->what == sent_call::type::kill) return orphans_.answered(call->serial, answer);
  writer_.answered(connection, *call, answer);
  end_connects();
  if (writer_.turned_away()) links_.discard(connection, errc::read_only, std::string(at_.away.words));
}

// --- what the parts tell ---

void session::on_up(link& connection) {
  if (aside_) return orphans_.connected(connection.id, links_.server().run_id);
  if (connection.of == role::shared) {
    at_.sharded_channels =
        at_.in_cluster && shared_.settings.sharded_subscription.value_or(links_.server().shards_channels);
    at_.renewals.want_all();
    orphans_.connected(connection.id, links_.server().run_id);
  } else if (connection.of == role::messages) {
    at_.channels.connected();
    if (plain_.connecting()) messages_.ask(connection);
  }
  end_connects();
}

void session::on_down(link const& connection, remains&& left, error_code const& why, std::string_view text) {
  if (connection.of == role::shared) {
    orphans_.disconnected();
    if (!aside_) plain_.restart_connects();
  }
  if (connection.of == role::messages) {
    at_.channels.disconnected(connection.soon_lost >= most_soon_lost);
    messages_.ended();
  }
  orphans_.give_up(std::move(left), why, text);
  if (aside_) return;
  end_connects();
  if (connection.of != role::messages && why) user_.shaken();
}

void session::on_trouble(error_code const& why, std::string_view text, bool transient) {
  // A process that has ended runs nothing more. Any other trouble says nothing of it.
  if (why == errc::connect_failed && text.find(no_process()) != text.npos) orphans_.unbar({});
  if (!aside_) user_.trouble(of_, why, text, transient);
}

void session::on_replicas(std::size_t many, instant asked) {
  if (aside_) return;
  at_.replicas.set_connected(many, shared_.now);
  if (many > 0) at_.replicas_missed = false;
  if (many >= at_.replicas.all(shared_.now)) at_.was_master = {asked, shared_.now};
}

// ADDR protects a stranger if ids started anew.
void session::kill(orphan const& gone) {
  command_.say("CLIENT", "KILL", "ID", gone.id, "ADDR", gone.address);
  links_.of(role::shared).write(shared_, command_, {.what = sent_call::type::kill, .serial = gone.serial});
}

// --- the direct lane ---

void session::want_direct() {
  if (direct_wanted_) return;
  direct_wanted_ = true;
  shared_.out->turn = true;
}

bool session::direct_idle() const { return links_.lane_idle() && !writer_.paused() && !at_.renewals.wants_all(); }

bool session::lane_answer(reply const& answer) {
  if (writer_.lane_answer(links_.of(role::direct), answer)) return true;
  if (writer_.turned_away()) links_.discard(links_.of(role::shared), errc::read_only, std::string(at_.away.words));
  return false;
}

// --- plain calls ---

void session::end_connects() {
  if (!plain_.any_connect_answered() || links_.of(role::shared).at != link::state::up) return;
  if ((direct_wanted_ && !links_.decided(role::direct)) || messages_.asked() || !links_.decided(role::messages)) return;
  plain_.end_connects();
}

void session::forget(operation& call) {
  links_.forget(call);
  orphans_.forget(call);
}

void session::collect(std::vector<operation*>& calls) const {
  links_.collect(calls);
  for (operation* call : orphans_.forced()) calls.push_back(call);
}

node_stats session::seen() const {
  node_stats made{.address = links_.who().address, .connected = up(), .kills_owed = orphans_.size()};
  for (role const each : {role::shared, role::direct, role::messages}) {
    link const& connection = links_.of(each);
    made.links += connection.at == link::state::up;
    made.in_flight += connection.unanswered.size() + connection.unsynced.size() + connection.lent;
  }
  return made;
}

bool session::quiet() const { return !orphans_.any_in_doubt() && at_.requests.empty() && links_.idle(); }

bool session::settled() const {
  auto const pauses = [this](role of) {
    link const& connection = links_.of(of);
    return connection.at == link::state::down && connection.retry_at > shared_.now;
  };
  bool const heard = !at_.channels.pending() || pauses(role::messages);
  // Between the tick that wants them and the turn that writes them renewals stand nowhere else.
  bool const asks = at_.renewals.wants_all();
  return links_.settled() && (writer_.paused() || pauses(role::shared) || (quiet() && heard && !asks));
}

}  // namespace latchkey::detail
