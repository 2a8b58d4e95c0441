#include <support/unit/world.hpp>

#include <algorithm>

namespace latchkey::test {

namespace {

config observed(config given) {
  given.on_event = [](event const&) {};
  return given;
}

}  // namespace

std::string shortened(std::string_view bytes) {
  std::string made;
  for (char c : bytes.substr(0, 160)) made += c == '\r' || c == '\n' ? ' ' : c;
  return made;
}

world::world(config given, std::size_t clients, known how)
    : settings(observed(std::move(given))), server(now), how_(how) {
  listen_to(server);
  if (how == known::by_nodes) nodes::join(*this, server, 0);
  for (std::size_t i = 0; i < clients; ++i) {
    std::string const id = std::string("client") + static_cast<char>('A' + i);
    client_machine::identity who{id, settings.username, settings.password, settings.database, i + 1};
    if (how == known::by_sentinel) who.sentinels = {{"sentinel", 26'379}};
    if (how == known::by_nodes) who.nodes = {{"node0", 1}};
    who.by_name = settings.tls != tls_options{};
    who.master = "m";
    if (settings.clock_margin > milliseconds(0))
      who.time_of_day = [this] {
        return std::chrono::floor<std::chrono::microseconds>((now - clock_behind).time_since_epoch());
      };
    clients_.push_back(std::make_unique<node>(settings, std::move(who)));
  }
}

world::~world() = default;

void world::listen_to(stepped_server& one) {
  one.on_reply = [this, &one](stepped_server::id at) {
    events_.push_back({.what = token::type::deliver, .server = &one, .at = at});
  };
  one.on_end = [this, &one](stepped_server::id at) {
    events_.push_back({.what = token::type::ended, .server = &one, .at = at});
  };
}

stepped_server& world::add_server() {
  resolved_ = others_.emplace_back(std::make_unique<stepped_server>(now)).get();
  resolved_->redis.run_id = "another" + std::to_string(others_.size());
  resolved_->redis.next_port = 50'000;
  if (how_ == known::by_nodes) nodes::join(*this, *resolved_, others_.size());
  listen_to(*resolved_);
  return *resolved_;
}

void world::remember(std::string line) {
  if (!keeps_history) return;
  auto const t = std::chrono::duration_cast<std::chrono::microseconds>(now - instant(std::chrono::hours(1))).count();
  history_.push_back("  " + std::to_string(steps_) + " @" + std::to_string(t / 1000) + "ms " + std::move(line));
}

void world::fail(std::string const& why) const {
  std::string text = why + "\n";
  constexpr std::size_t shown = 100;
  for (std::size_t i = 0; i < history_.size(); ++i)
    if (i < shown || i + shown >= history_.size()) text += history_[i] + "\n";
  throw violation(text);
}

void world::expect(bool met, std::string const& what) const {
  if (!met && !faulty) fail("not as expected: " + what);
}

// --- events ---

bool world::blocked(token const& what) const {
  if (what.what == token::type::said) {
    auto const& links = clients_[what.client]->connections;
    auto const found = links.find(what.serial);
    return found != links.end() && found->second.muted;
  }
  if (what.what != token::type::execute && what.what != token::type::deliver) return false;
  std::size_t client = 0;
  std::uint32_t serial = 0;
  connection const* const one = find(what.server, what.at, client, serial);
  if (!one) return false;
  if (what.what == token::type::execute) return one->deaf;
  return one->muted || (borrower_stuck && clients_[client]->lent.contains(serial));
}

std::uint64_t world::random(std::uint64_t below) {
  any_order = any_order * 6364136223846793005u + 1442695040888963407u;
  return (any_order >> 33) % below;
}

std::deque<world::token>::iterator world::choose() {
  auto const ready = [&](token const& one) { return !blocked(one); };
  auto next = std::find_if(events_.begin(), events_.end(), ready);
  if (any_order == 0 || next == events_.end()) return next;
  for (auto skip = random(4); skip > 0; --skip) {
    auto const other = std::find_if(std::next(next), events_.end(), ready);
    if (other == events_.end()) break;
    next = other;
  }
  return next;
}

bool world::step() {
  auto const next = choose();
  if (next == events_.end()) {
    if (!late_bytes) return false;
    std::size_t ran = server.run_left_behind();
    for (auto const& other : others_) ran += other->run_left_behind();
    if (ran > 0) remember("(left behind bytes run: " + std::to_string(ran) + " commands)");
    return ran > 0;
  }
  token const one = *next;
  events_.erase(next);
  if (before_step) before_step(*this);
  ++steps_;
  act(one);
  check_holds();
  return true;
}

instant world::next_time() const {
  instant next = never;
  for (auto const& one : clients_) {
    next = std::min(next, one->machine.wake_at());
    if (borrower_stuck) continue;
    for (auto const& [serial, loan] : one->lent) next = std::min(next, loan.end);
  }
  for (task const* one : self_timed_)
    if (one->self_timed && !one->done()) next = std::min(next, one->deadline);
  return next;
}

bool world::wait_for_next() {
  instant const next = next_time();
  if (next == never) return false;
  now = std::max(now, next);
  check_holds();
  on_time();
  return true;
}

void world::pass(milliseconds length) {
  instant const end = detail::after(now, length);
  run();
  while (next_time() <= end) {
    wait_for_next();
    run();
  }
  now = end;
  check_holds();
}

void world::on_time() {
  ++wakes_;
  if (before_step) before_step(*this);
  ++steps_;
  remember("(time)");
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    node& me = *clients_[i];
    for (auto const& [serial, loan] : me.lent)
      if (!borrower_stuck && loan.end <= now)
        events_.push_back({.what = token::type::loan_over, .client = i, .serial = serial});
    me.machine.time(now, me.out);
    perform(i);
  }
  for (std::size_t i = 0; i < self_timed_.size(); ++i) {
    task& one = *self_timed_[i];
    if (!one.self_timed || one.done() || one.deadline > now) continue;
    clients_[one.client]->machine.expire(one, now, clients_[one.client]->out);
    perform(one.client);
  }
  check_holds();
}

// A fault may leave the lock with somebody who keeps it: then finish() takes it away and sees to the rest.
void world::act(token const& what) {
  switch (what.what) {
    case token::type::turn: return take_turn(what.client);
    case token::type::open: return open(what);
    case token::type::execute: {
      std::size_t client = 0;
      std::uint32_t serial = 0;
      if (!find(what.server, what.at, client, serial)) return;  // what was left behind runs when a test says so
      std::size_t const before = what.server->log.size();
      what.server->execute(what.at);
      if (keeps_history && what.server->log.size() > before) remember("server: " + shortened(what.server->log[before]));
      return;
    }
    case token::type::deliver: return deliver(what);
    case token::type::said: return scouts::deliver(*this, what.client, what.serial);
    case token::type::ended: {
      std::size_t client = 0;
      std::uint32_t serial = 0;
      if (find(what.server, what.at, client, serial)) broken(client, serial);
      return;
    }
    case token::type::loan_over: {
      node& me = *clients_[what.client];
      if (me.lent.erase(what.serial) == 0) return;
      remember("the borrower gives the lane back unread");
      me.machine.lane_failed(what.serial, errc::timeout, now, me.out);
      return perform(what.client);
    }
  }
}

void world::perform(std::size_t index) {
  node& me = *clients_[index];
  for (detail::operation* one : me.out.completed) {
    task& done = static_cast<task&>(*one);
    ++done.completions;
    done.done_at = now;
    if (keeps_history)
      remember(done.label +
               (done.error ? " ends: " + done.error.message()
                : done.yes ? " is granted"
                           : " is done") +
               (done.text.empty() ? "" : " (" + done.text + ")"));
    if (done.completions > 1) fail(done.label + " was completed twice");
  }
  for (auto const& loss : me.out.lost) {
    task& holder = *static_cast<shown_hold*>(loss.link)->of;
    ++holder.losses;
    holder.why_lost = loss.why;
    remember(holder.label + " has lost its hold: " + loss.why.message());
    if (holder.losses > 1) fail(holder.label + " lost its hold twice");
    if (holder.ended) fail(holder.label + " lost a hold that it had released");
  }
  notes.insert(notes.end(), me.out.notes.begin(), me.out.notes.end());
  if (me.out.turn && !me.turn_posted) {
    me.turn_posted = true;
    events_.push_back({.what = token::type::turn, .client = index});
  }
  me.out.clear();
}

}  // namespace latchkey::test
