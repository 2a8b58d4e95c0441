#include <support/unit/world.hpp>

#include <algorithm>

namespace latchkey::test {

using detail::reply_reader;

namespace {

char const* name_of(role as) {
  switch (as) {
    case role::shared: return "shared";
    case role::direct: return "direct";
    case role::messages: return "messages";
    case role::scout: return "scout";
  }
  return "";
}

}  // namespace

void world::take_turn(std::size_t index) {
  node& me = *clients_[index];
  me.turn_posted = false;
  detail::io_actions io;
  me.machine.turn(now, io, me.out);
  for (std::uint32_t serial : io.lend)
    if (me.connections.contains(serial)) me.connections[serial].lendable = true;
  io.close.insert(io.close.end(), io.abort.begin(), io.abort.end());
  for (std::uint32_t serial : io.close) {
    auto const found = me.connections.find(serial);
    if (found == me.connections.end()) continue;
    remember(std::string("closes ") + name_of(found->second.as));
    if (found->second.server && !found->second.dead) found->second.server->leave(found->second.at, false);
    me.connections.erase(found);
    if (me.lent.contains(serial))
      events_.push_back({.what = token::type::loan_over, .client = index, .serial = serial});
  }
  for (auto const& one : io.open)
    events_.push_back({.what = token::type::open,
                       .client = index,
                       .serial = one.serial,
                       .as = one.as,
                       .to_peer = one.to_peer,
                       .leader = one.leader,
                       .text = one.to.host});
  for (auto const& one : io.open)
    me.connections[one.serial] = {.as = one.as,
                                  .outdated = one.as != role::scout && sentinels::outdated(*this, index, one.to.host)};
  for (auto const& one : io.write) say(index, one.serial, one.bytes);
  perform(index);
}

void world::say(std::size_t index, std::uint32_t serial, std::string const& bytes) {
  auto const found = clients_[index]->connections.find(serial);
  if (found == clients_[index]->connections.end()) fail("bytes for a connection that was closed");
  connection& one = found->second;
  if (one.as == role::scout && how_ == known::by_nodes) return nodes::asked(*this, index, serial, bytes);
  if (one.as == role::scout) return sentinels::asked(*this, index, serial, bytes);
  if (one.outdated && bytes.find("EVAL") != bytes.npos) fail("asks a master that it knows to be replaced");
  if (one.dead || !one.server->alive(one.at)) {
    events_.push_back({.what = token::type::ended, .server = one.server, .at = one.at});
    return;
  }
  std::size_t const commands = one.server->arrive(one.at, bytes);
  for (std::size_t i = 0; i < commands; ++i)
    events_.push_back({.what = token::type::execute, .server = one.server, .at = one.at});
}

void world::open(token const& what) {
  node& me = *clients_[what.client];
  auto const found = me.connections.find(what.serial);
  if (found == me.connections.end()) return;  // closed meanwhile
  ++opened;
  bool const concerned = only_host.empty() || what.text == only_host;
  if (nodes::has_left(*this, what.text)) {
    me.connections.erase(found);
    me.machine.open_failed(what.serial, errc::connect_failed, "Connection refused", now, me.out);
    return perform(what.client);
  }
  if (nobody_answers && concerned) return;
  if (!unreachable.empty() && concerned) {
    me.connections.erase(found);
    me.machine.open_failed(what.serial, errc::connect_failed, unreachable, now, me.out);
    return perform(what.client);
  }
  connection& one = found->second;
  one.host = what.text;
  auto const leader = me.connections.find(what.leader);
  connection const* const peer = leader == me.connections.end() ? nullptr : &leader->second;
  if (one.as != role::scout) {
    one.server = what.to_peer && !lanes_resolve_anew && peer ? peer->server : sentinels::named(*this, what.text);
    one.at = one.server->accept();
  }
  remember(std::string("opens ") + name_of(one.as));
  me.machine.opened(what.serial, now, me.out);
  perform(what.client);
}

void world::deliver(token const& what) {
  auto bytes = what.server->take_reply(what.at);
  std::size_t index = 0;
  std::uint32_t serial = 0;
  connection const* const one = find(what.server, what.at, index, serial);
  if (!bytes || !one) return;
  node& me = *clients_[index];
  if (keeps_history) remember(std::string("client: ") + name_of(one->as) + " " + shortened(*bytes));
  if (me.lent.contains(serial)) return lane_reply(index, serial, *bytes);
  me.machine.received(serial, *bytes, now, me.out);
  perform(index);
}

void scouts::will_hear(world& in, std::size_t index, std::uint32_t serial, std::string bytes, std::uint64_t epoch) {
  in.clients_[index]->connections.at(serial).said.push_back({std::move(bytes), epoch});
  in.events_.push_back({.what = world::token::type::said, .client = index, .serial = serial});
}

void scouts::deliver(world& in, std::size_t index, std::uint32_t serial) {
  world::node& me = *in.clients_[index];
  auto const found = me.connections.find(serial);
  if (found == me.connections.end()) return;
  world::answer const next = std::move(found->second.said.front());
  found->second.said.pop_front();
  auto const read = in.snapshot(index).bytes_received;
  me.machine.received(serial, next.bytes, in.now, me.out);
  // What it has given up, and not yet closed, it does not read (walk 468943).
  if (in.snapshot(index).bytes_received > read) me.heard = std::max(me.heard, next.epoch);
  in.perform(index);
}

void world::lane_reply(std::size_t index, std::uint32_t serial, std::string const& bytes) {
  node& me = *clients_[index];
  reply_reader reader;
  reader.feed(bytes);
  reply got;
  bool const whole = reader.next(got) == reply_reader::result::reply;
  auto const next =
      whole ? me.machine.lane_answer(serial, std::move(got), now, me.out) : client_machine::lane_next::done;
  if (!whole) me.machine.lane_failed(serial, errc::protocol_error, now, me.out);
  if (next == client_machine::lane_next::send_again)
    say(index, serial, me.machine.lane_bytes(serial));
  else
    me.lent.erase(serial);
  perform(index);
}

// The client notices that a connection has ended. An idle lane is nobody's to look at.
void world::broken(std::size_t index, std::uint32_t serial) {
  node& me = *clients_[index];
  connection& one = me.connections.at(serial);
  if (one.lendable && !one.dead && !me.lent.contains(serial)) {
    one.dead = true;
    return;
  }
  remember(std::string("loses ") + name_of(one.as));
  me.connections.erase(serial);
  if (me.lent.contains(serial)) {
    me.lent.erase(serial);
    me.machine.lane_failed(serial, errc::connection_lost, now, me.out);
  } else {
    me.machine.broken(serial, errc::connection_lost, now, me.out);
  }
  perform(index);
}

// --- faults ---

world::connection const* world::find(stepped_server const* of, stepped_server::id at, std::size_t& client,
                                     std::uint32_t& serial) const {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    for (auto const& [number, one] : clients_[i]->connections)
      if (one.server == of && one.at == at) {
        client = i;
        serial = number;
        return &one;
      }
  return nullptr;
}

world::connection* world::find(role as, std::size_t client, std::uint32_t* serial) {
  for (auto& [number, one] : clients_[client]->connections)
    if (one.as == as && (as == role::scout ? !one.host.empty() : one.server != nullptr)) {
      if (serial) *serial = number;
      return &one;
    }
  return nullptr;
}

bool world::connected(role as, std::size_t client) const {
  for (auto const& [number, one] : clients_[client]->connections)
    if (one.as == as && one.server && !one.dead) return true;
  return false;
}

world& world::lose(role as, fate what, std::size_t client) {
  std::uint32_t serial = 0;
  connection* const one = find(as, client, &serial);
  if (!one || one->dead) return *this;
  if (what == fate::silent) {
    remember("a link goes silent");
    one->deaf = one->muted = true;
    return *this;
  }
  remember(what == fate::gone  ? "a link is cut, its bytes are gone"
           : what == fate::ran ? "a link is cut, its bytes run"
                               : "a link is cut, its bytes wait");
  if (what == fate::ran)
    while (one->server && one->server->execute(one->at)) {
    }
  if (one->server) one->server->leave(one->at, what != fate::late);  // a scout speaks to none
  broken(client, serial);
  return *this;
}

world& world::deafen(role as, bool deaf, std::size_t client) {
  if (connection* const one = find(as, client)) one->deaf = deaf;
  return *this;
}

world& world::mute(role as, bool muted, std::size_t client) {
  if (connection* const one = find(as, client)) one->muted = muted;
  return *this;
}

void world::inject(role as, std::string_view bytes, std::size_t client) { hear(serial(as, client), bytes, client); }

void world::hear(std::uint32_t serial, std::string_view bytes, std::size_t client) {
  clients_[client]->machine.received(serial, bytes, now, clients_[client]->out);
  perform(client);
}

std::uint32_t world::serial(role as, std::size_t client) {
  std::uint32_t found = 0;
  if (!find(as, client, &found)) fail("no such connection");
  return found;
}

}  // namespace latchkey::test
