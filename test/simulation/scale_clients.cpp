#include <simulation/randomness.hpp>
#include <simulation/scale_run.hpp>

#include <utility>

namespace latchkey::scale {

namespace {

constexpr nanoseconds turn_delay{2'000};  // until the executor comes to it

}  // namespace

// Not the same for all, so that nothing happens at the same time only because time is a number.
nanoseconds scale_run::way(std::uint32_t index) const {
  return nanoseconds(80'000 + static_cast<std::int64_t>(simulation::mix(what_.seed, 3, index) % 40'000));
}

void scale_run::perform(std::uint32_t index) {
  client& me = *clients_[index];
  found_.lost += me.out.lost.size();
  auto const ready = std::exchange(me.out.completed, {});
  if (me.out.turn && !me.turn_posted) {
    me.turn_posted = true;
    post(event::type::turn, now_ + turn_delay, index);
  }
  me.out.clear();
  for (detail::operation* one : ready) completed(static_cast<task&>(*one));
  if (instant const next = me.machine.wake_at(); next < me.timer_at) {
    me.timer_at = next;
    post(event::type::timer, std::max(next, now_), index);
  }
}

void scale_run::on_timer(std::uint32_t index, instant at) {
  client& me = *clients_[index];
  if (at < me.timer_at) return;
  me.timer_at = detail::never;
  if (me.machine.wake_at() <= now_) me.machine.time(now_, me.out);
  perform(index);
}

void scale_run::take_turn(std::uint32_t index) {
  client& me = *clients_[index];
  me.turn_posted = false;
  detail::io_actions io;
  me.machine.turn(now_, io, me.out);
  io.close.insert(io.close.end(), io.abort.begin(), io.abort.end());
  for (std::uint32_t serial : io.close) close(index, serial);
  for (auto const& one : io.open) {
    auto const number = static_cast<std::uint32_t>(wires_.size());
    // Hosts are called by the number of their server.
    auto const leader = me.wires.find(one.leader);
    bool const to_peer = one.to_peer && leader != me.wires.end();
    auto const where = to_peer ? wires_[leader->second].site : static_cast<std::uint32_t>(std::stoul(one.to.host));
    wires_.push_back({.client = index, .serial = one.serial, .site = where, .scout = one.as == detail::role::scout});
    me.wires[one.serial] = number;
    post(event::type::open, now_ + 2 * way(index), number);
  }
  for (auto& one : io.write) say(index, one.serial, std::move(one.bytes));
  perform(index);
}

void scale_run::open(std::uint32_t number) {
  wire& on = wires_[number];
  site& there = *sites_[on.site];
  client& me = *clients_[on.client];
  if (!on.open || (there.dead && what_.silent)) return;
  if (there.dead) {
    on.open = false;
    me.wires.erase(on.serial);
    me.machine.open_failed(on.serial, errc::connect_failed, "Connection refused", now_, me.out);
    return perform(on.client);
  }
  if (!on.scout) {
    on.at = there.server.accept();
    there.wires[on.at] = number;
  }
  me.machine.opened(on.serial, now_, me.out);
  perform(on.client);
}

void scale_run::close(std::uint32_t index, std::uint32_t serial) {
  client& me = *clients_[index];
  auto const found = me.wires.find(serial);
  if (found == me.wires.end()) return;
  wires_[found->second].open = false;
  post(event::type::closed, now_ + way(index), found->second);
  me.wires.erase(found);
}

void scale_run::say(std::uint32_t index, std::uint32_t serial, std::string&& bytes) {
  auto const found = clients_[index]->wires.find(serial);
  if (found == clients_[index]->wires.end()) return;
  wires_[found->second].up.push_back(std::move(bytes));
  post(event::type::reached, now_ + way(index), found->second);
}

void scale_run::heard(std::uint32_t number) {
  wire& on = wires_[number];
  if (!on.open) return;
  client& me = *clients_[on.client];
  if (on.scout) {
    me.machine.received(on.serial, nodes_, now_, me.out);
  } else if (auto const bytes = sites_[on.site]->server.take_reply(on.at)) {
    me.machine.received(on.serial, *bytes, now_, me.out);
  }
  perform(on.client);
}

void scale_run::ended(std::uint32_t number) {
  wire& on = wires_[number];
  if (!on.open) return;
  on.open = false;
  client& me = *clients_[on.client];
  me.wires.erase(on.serial);
  me.machine.broken(on.serial, errc::connection_lost, now_, me.out);
  perform(on.client);
}

}  // namespace latchkey::scale
