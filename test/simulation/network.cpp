#include <simulation/network.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

bool later(event const& a, event const& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

std::size_t size_of(std::deque<segment> const& pipe) {
  std::size_t made = 0;
  for (auto const& one : pipe) made += one.bytes.size();
  return made;
}

// Keeps the first `bytes` of what is on its way.
void keep(std::deque<segment>& pipe, std::size_t bytes) {
  std::deque<segment> kept;
  for (auto& one : pipe) {
    if (bytes == 0) break;
    if (one.bytes.size() > bytes) one.bytes.resize(bytes);
    bytes -= one.bytes.size();
    kept.push_back(std::move(one));
  }
  pipe = std::move(kept);
}

}  // namespace

network::network(std::uint64_t seed, bool jitter, bool split, network_user& user)
    : seed_(seed), jitter_(jitter), split_(split), user_(user) {
  constexpr moment ways[] = {20'000, 200'000, 1'000'000, 5'000'000};
  way_ = dice(mix(seed, 3)).of(ways);
  longest_ = jitter ? 32 * way_ : way_;
}

char const* name_of(role as) { return as == role::shared ? "shared" : as == role::direct ? "direct" : "messages"; }

// --- events ---

void network::post(event::type what, moment at, std::size_t client, std::uint32_t number) {
  events_.push_back({at, order_++, what, client, number});
  std::push_heap(events_.begin(), events_.end(), later);
}

// Keeps its place among those that are late together.
void network::post_again(event const& late, moment at) {
  events_.push_back(late);
  events_.back().at = at;
  std::push_heap(events_.begin(), events_.end(), later);
}

event network::take() {
  std::pop_heap(events_.begin(), events_.end(), later);
  event const made = events_.back();
  events_.pop_back();
  return made;
}

// --- wires ---

wire& network::add(std::size_t client, std::uint32_t serial, role as) {
  auto const number = static_cast<std::uint32_t>(wires_.size());
  wire& made = *wires_.emplace_back(std::make_unique<wire>());
  made.number = number;
  made.client = client;
  made.serial = serial;
  made.as = as;
  return made;
}

wire* network::find(std::size_t client, std::uint32_t serial) {
  for (auto it = wires_.rbegin(); it != wires_.rend(); ++it)
    if ((*it)->client == client && (*it)->serial == serial && (*it)->client_open) return it->get();
  return nullptr;
}

wire* network::find(std::size_t client, role as) {
  for (auto it = wires_.rbegin(); it != wires_.rend(); ++it)
    if ((*it)->client == client && (*it)->as == as && (*it)->client_open && !(*it)->dead && (*it)->at != 0)
      return it->get();
  return nullptr;
}

bool network::deceives(std::size_t client) const {
  return std::any_of(wires_.begin(), wires_.end(), [&](auto const& one) {
    return one->client == client && one->client_open && (one->silent || one->broken);
  });
}

wire* network::of_server(server::handle which) {
  auto const found = by_handle_.find(which);
  return found == by_handle_.end() ? nullptr : wires_[found->second].get();
}

void network::known_as(wire& one, server::handle which) {
  one.at = which;
  by_handle_[which] = one.number;
}

// Most bytes take about as long as others, few much longer. What it is depends on nothing but the place of the bytes in
// their connection, so that it is the same when something else is left out.
moment network::way(wire& on, bool up) {
  if (!jitter_) return way_;
  std::uint64_t const drawn =
      mix(seed_, on.client * 4 + static_cast<std::size_t>(on.as), on.serial * 2 + up, ++on.sent);
  std::uint64_t const sort = drawn % 32;
  moment const part = static_cast<moment>(drawn >> 40) % 1'000;
  if (sort < 24) return way_ / 2 + way_ * part / 1'000;
  if (sort < 31) return way_ + 4 * way_ * part / 1'000;
  return way_ + 31 * way_ * part / 1'000;
}

void network::send(wire& on, std::deque<segment>& to, moment& last, std::string&& bytes, moment now, bool up) {
  moment arrives = std::max(last + 1, now + way(on, up));
  if (up && on.silent) arrives = std::max(arrives, on.late_until);
  event::type const what = up ? event::type::to_server : event::type::to_client;
  std::uint64_t const drawn = mix(seed_, 5, on.number, ++on.sent);
  if (split_ && bytes.size() > 1 && drawn % 8 == 0) {
    std::size_t const first = 1 + (drawn >> 8) % (bytes.size() - 1);
    to.push_back({arrives, bytes.substr(0, first), false});
    post(what, arrives, on.client, on.number);
    bytes.erase(0, first);
    arrives += 1 + way(on, up);
  }
  last = arrives;
  to.push_back({arrives, std::move(bytes), false});
  post(what, arrives, on.client, on.number);
}

void network::send_up(wire& on, std::string&& bytes, moment now) {
  if (on.dead) return end_down(on, now);
  if (on.at != 0 && !on.broken) send(on, on.up, on.last_up, std::move(bytes), now, true);
}

void network::send_down(wire& on, std::string&& bytes, moment now) {
  if (on.client_open && !on.silent && !on.broken) send(on, on.down, on.last_down, std::move(bytes), now, false);
}

void network::end_down(wire& on, moment now) {
  if (!on.client_open || on.silent) return;
  on.last_down = std::max(on.last_down + 1, now + way(on, false));
  on.down.push_back({on.last_down, {}, true});
  post(event::type::to_client, on.last_down, on.client, on.number);
}

// What was sent before may be long on its way.
void network::close_up(wire& on, moment now) {
  on.client_open = false;
  on.down.clear();
  if (on.at == 0 || on.broken) return;
  std::uint64_t const drawn = mix(seed_, 7, on.number);
  if (jitter_ && drawn % 4 == 0) hold_up(on, ms(static_cast<std::int64_t>((drawn >> 8) % 2'000)));
  moment arrives = std::max(on.last_up + 1, now + way_);
  if (on.silent) arrives = std::max(arrives, on.late_until);
  on.last_up = arrives;
  on.up.push_back({arrives, {}, true});
  post(event::type::to_server, arrives, on.client, on.number);
}

void network::forget_server(wire& on, moment now) {
  if (on.client_open && jitter_) keep(on.down, mix(seed_, 9, on.number) % (size_of(on.down) + 1));
  hang_up(on, now);
}

void network::hang_up(wire& on, moment now) {
  by_handle_.erase(on.at);
  on.at = 0;
  on.up.clear();
  if (on.client_open) end_down(on, now);
}

void network::cut(wire& on, dice& chances, moment now) {
  if (on.broken) return;
  keep(on.up, chances.one_in(3) ? 0 : static_cast<std::size_t>(chances.below(size_of(on.up) + 1)));
  if (chances.one_in(2)) hold_up(on, chances.between(0, ms(chances.one_in(2) ? 20 : 4'000)));
  if (on.at != 0) {
    on.last_up = std::max(on.last_up + 1, now + way_);
    on.up.push_back({on.last_up, {}, true});
    post(event::type::to_server, on.last_up, on.client, on.number);
  }
  keep(on.down, static_cast<std::size_t>(chances.below(size_of(on.down) + 1)));
  end_down(on, now);
  on.broken = true;
}

bool network::says_more(std::size_t client) const {
  return std::any_of(wires_.begin(), wires_.end(),
                     [&](auto const& one) { return one->client == client && one->at != 0 && !one->up.empty(); });
}

void network::abandon(std::size_t client, bool unheard, moment now) {
  for (auto const& one : wires_) {
    if (one->client != client) continue;
    one->down.clear();
    if (unheard) {
      one->client_open = false;
      one->up.clear();
    } else if (one->client_open && !one->dead) {
      close_up(*one, now);
    } else if (one->at != 0) {
      one->up.push_back({now, {}, true});
      post(event::type::to_server, now, one->client, one->number);
    }
  }
}

void network::silence(wire& on, moment late_until) {
  if (on.silent || on.broken) return;
  on.silent = true;
  on.late_until = late_until;
  on.down.clear();
  for (auto& one : on.up) {
    one.at = std::max(one.at, late_until);
    post(event::type::to_server, one.at, on.client, on.number);
  }
  on.last_up = std::max(on.last_up, late_until);
}

void network::hold_up(wire& on, moment length) {
  for (auto& one : on.up) {
    one.at += length;
    post(event::type::to_server, one.at, on.client, on.number);
  }
  if (!on.up.empty()) on.last_up = std::max(on.last_up, on.up.back().at);
}

void network::deliver(event const& what, moment now) {
  wire& on = *wires_[what.number];
  bool const up = what.what == event::type::to_server;
  pop(up ? on.up : on.down, now, on, up);
}

void network::pop(std::deque<segment>& from, moment now, wire& on, bool up) {
  if (from.empty() || from.front().at > now) return;  // it was lost, or held up, meanwhile
  segment const one = std::move(from.front());
  from.pop_front();
  if (up) return one.end ? user_.closed(on) : user_.reached(on, one.bytes);
  if (!on.client_open) return;
  if (one.end) return user_.ended(on);
  user_.heard(on, one.bytes);
}

std::size_t network::bytes_on_the_way() const {
  std::size_t made = 0;
  for (auto const& one : wires_) made += size_of(one->up) + size_of(one->down);
  return made;
}

}  // namespace latchkey::simulation
