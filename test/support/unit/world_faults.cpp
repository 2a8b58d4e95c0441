#include <support/unit/world.hpp>

namespace latchkey::test {

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
    if (one.as == as && one.server) {
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

void world::lose(role as, fate what, std::size_t client) {
  std::uint32_t serial = 0;
  connection* const one = find(as, client, &serial);
  if (!one || one->dead) return;
  if (what == fate::silent) {
    remember("a link goes silent");
    one->deaf = one->muted = true;
    return;
  }
  remember(what == fate::gone  ? "a link is cut, its bytes are gone"
           : what == fate::ran ? "a link is cut, its bytes run"
                               : "a link is cut, its bytes wait");
  if (what == fate::ran)
    while (one->server->execute(one->at)) {
    }
  one->server->leave(one->at, what != fate::late);
  broken(client, serial);
}

void world::deafen(role as, bool deaf, std::size_t client) {
  if (connection* const one = find(as, client)) one->deaf = deaf;
}

void world::mute(role as, bool muted, std::size_t client) {
  if (connection* const one = find(as, client)) one->muted = muted;
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
