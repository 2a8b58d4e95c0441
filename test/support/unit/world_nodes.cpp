#include <support/unit/world.hpp>
#include <wire/cluster.hpp>

#include <algorithm>

namespace latchkey::test {

using detail::hashed_part;
using detail::reply_reader;
using detail::slot_of;

namespace {

std::string node_name(std::size_t number) { return "node" + std::to_string(number); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string announced(world const& in, std::size_t number) {
  return in.nodes_announce_names ? ",name" + std::to_string(number) : "";
}

std::string id_of_followed(world const& in, std::size_t number, std::string const& generation) {
  auto const master = in.followed.find(number);
  return master == in.followed.end() ? "-" : "id" + std::to_string(master->second) + generation;
}

// The keys of a command, or its sharded channel.
std::vector<std::string> keys_of(stepped_server::words const& command) {
  if (command[0].starts_with("EVAL")) {
    auto const count = static_cast<std::ptrdiff_t>(std::stoul(command.at(2)));
    return {command.begin() + 3, command.begin() + 3 + count};
  }
  static constexpr std::string_view without[] = {"AUTH",      "CLIENT", "INFO", "PING",   "ROLE",
                                                 "SCRIPT",    "PUBSUB", "WAIT", "SELECT", "UNSUBSCRIBE",
                                                 "SUBSCRIBE", "MULTI",  "TIME"};
  if (std::find(std::begin(without), std::end(without), command[0]) != std::end(without)) return {};
  return {command.at(1)};
}

void copy_keys(stepped_server& from, stepped_server& to, std::uint16_t slot) {
  from.exists("x");  // its clock is set
  to.exists("x");
  for (auto const& key : from.redis.data.keys()) {
    if (slot_of(key) != slot) continue;
    auto const* const found = from.redis.data.find(key);
    to.redis.data.make(key, found->holds).ends = found->ends;
  }
}

}  // namespace

stepped_server& nodes::at(world& in, std::size_t number) {
  return number == 0 ? in.server : *in.others_.at(number - 1);
}

std::uint64_t nodes::latest_epoch(world const& in) {
  std::uint64_t most = 0;
  for (auto const& [number, epoch] : in.slots_.epochs) most = std::max(most, epoch);
  return most;
}

std::size_t nodes::owner_of(world const& in, std::uint16_t slot) { return in.slots_.owner_of(slot); }

world::slot_table const& nodes::known_by(world const& in, std::size_t number) {
  auto const late = in.late_nodes_.find(number);
  return late == in.late_nodes_.end() ? in.slots_ : late->second;
}

void nodes::hold_back(world& in, std::size_t number) { in.late_nodes_.try_emplace(number, in.slots_); }

// Redis: clusterUpdateSlotsConfigWith.
void nodes::hear(world& in, std::size_t number, std::size_t of) {
  auto const late = in.late_nodes_.find(number);
  world::slot_table const& said = known_by(in, of);
  auto const epoch = said.epochs.find(of);
  if (late == in.late_nodes_.end() || number == of || epoch == said.epochs.end()) return;
  world::slot_table& mine = late->second;
  mine.epochs[of] = epoch->second;
  auto const take = [&](std::size_t& owner) {
    auto const known = mine.epochs.find(owner);
    if (owner != of && (known == mine.epochs.end() || known->second < epoch->second)) owner = of;
  };
  for (auto const& [slot, one] : said.slots) mine.slots.try_emplace(slot, world::slot{mine.most_at});
  for (auto& [slot, one] : mine.slots)
    if (said.owner_of(slot) == of) take(one.owner);
  if (said.most_at == of) take(mine.most_at);
  end_foreign_channels(in, number);
}

void nodes::hear_all(world& in, std::size_t number) {
  if (in.late_nodes_.erase(number) > 0) end_foreign_channels(in, number);
}

void nodes::end_foreign_channels(world& in, std::size_t number) {
  auto const& known = known_by(in, number);
  at(in, number).redis.end_channels([&](std::string_view channel) {
    return known.owner_of(slot_of(channel)) != number;
  });
}

// Redis: getNodeByQuery.
void nodes::join(world& in, stepped_server& one, std::size_t number) {
  one.redis.version = "7.0.15";
  in.slots_.epochs[number] = number;
  one.elsewhere = [&in, &one, number](stepped_server::words const& command, bool asking) -> std::string {
    auto const keys = keys_of(command);
    if (keys.empty()) return {};
    std::uint16_t const slot = slot_of(keys.front());
    for (auto const& key : keys)
      if (slot_of(key) != slot) return "CROSSSLOT Keys in request don't hash to the same slot";
    world::slot_table const& known = known_by(in, number);
    auto const found = known.slots.find(slot);
    std::size_t const moves_to = found == known.slots.end() ? world::nowhere : found->second.moves_to;
    std::size_t const owner = known.owner_of(slot);
    std::string const at = std::to_string(slot) + ' ';
    bool const channel = is_one_of(command[0], {"SSUBSCRIBE", "SPUBLISH"});
    auto const here =
        std::count_if(keys.begin(), keys.end(), [&](auto const& key) { return one.redis.data.find(key) != nullptr; });
    bool const all = here == static_cast<std::ptrdiff_t>(keys.size());
    if (owner == number) {
      if (moves_to == world::nowhere || channel || all) return {};
      if (here == 0) return "ASK " + at + node_name(moves_to) + ":1";
      return "TRYAGAIN Multiple keys request during rehashing of slot";
    }
    if (owner == world::nowhere) return "CLUSTERDOWN Hash slot not served";
    if (moves_to == number && asking)
      return keys.size() > 1 && !all ? "TRYAGAIN Multiple keys request during rehashing of slot" : "";
    return "MOVED " + at + node_name(owner) + ":1";
  };
}

void nodes::begin_move(world& in, std::string_view name, std::size_t to) {
  std::uint16_t const slot = slot_of(name);
  std::size_t const owner = owner_of(in, slot);
  for (std::size_t const one : {owner, to}) hear_all(in, one);
  in.slots_.slots[slot] = {owner, to};
}

void nodes::uncover(world& in, std::string_view name) { in.slots_.slots[slot_of(name)] = {world::nowhere}; }

void nodes::cover(world& in, std::string_view name, std::size_t by) {
  in.slots_.slots[slot_of(name)] = {by};
  ++in.slots_.epochs[by];
}

void nodes::move_keys(world& in, std::string_view name, std::size_t to) {
  std::uint16_t const slot = slot_of(name);
  stepped_server& from = at(in, owner_of(in, slot));
  copy_keys(from, at(in, to), slot);
  for (auto const& key : from.redis.data.keys())
    if (slot_of(key) == slot) from.redis.data.remove(key);
}

void nodes::move(world& in, std::string_view name, std::size_t to) {
  in.remember("slot of " + std::string(name) + " moves to " + node_name(to));
  std::uint16_t const slot = slot_of(name);
  std::size_t const before = owner_of(in, slot);
  move_keys(in, name, to);
  for (std::size_t const one : {before, to}) hear_all(in, one);
  in.slots_.slots[slot] = {to};
  in.slots_.epochs[to] = latest_epoch(in) + 1;
  end_foreign_channels(in, before);
}

void nodes::take_over(world& in, std::size_t from, std::size_t to, bool gone) {
  in.remember(node_name(to) + " takes over from " + node_name(from));
  hear_all(in, to);
  if (in.slots_.most_at == from) in.slots_.most_at = to;
  for (auto& [slot, one] : in.slots_.slots) {
    if (one.owner == from) one.owner = to;
    if (one.moves_to == from) one.moves_to = to;
  }
  std::uint64_t const epoch = latest_epoch(in) + 1;
  in.slots_.epochs.erase(from);
  in.slots_.epochs[to] = epoch;
  in.followed.erase(to);
  for (auto& [replica, master] : in.followed)
    if (master == from) master = to;
  if (gone)
    at(in, from).restart(true);
  else if (!in.late_nodes_.contains(from))
    at(in, from).redis.end_channels([](std::string_view) { return true; });
}

void nodes::leave(world& in, std::size_t number) {
  in.remember(node_name(number) + " leaves");
  in.slots_.epochs.erase(number);
  in.gone_.insert(number);
  at(in, number).restart(false);
}

void nodes::forget(world& in, std::size_t number) { in.forgotten_.insert(number); }

void nodes::remember(world& in, std::size_t number) { in.forgotten_.erase(number); }

void nodes::add_slot(world& in, std::string_view name, std::size_t to) { in.slots_.slots[slot_of(name)] = {to}; }

void nodes::make_anew(world& in, bool shifted) {
  std::size_t const count = in.others_.size() + 1;
  in.generation_ += '+';
  auto const next = [&](std::size_t& owner) { owner = (owner + (shifted ? 1 : 0)) % count; };
  next(in.slots_.most_at);
  for (auto& [slot, one] : in.slots_.slots) next(one.owner);
  for (std::size_t i = 0; i < count; ++i) {
    in.slots_.epochs[i] = i;
    at(in, i).restart(false);
  }
}

bool nodes::has_left(world const& in, std::string const& host) {
  return std::any_of(in.gone_.begin(), in.gone_.end(), [&](std::size_t one) { return node_name(one) == host; });
}

void nodes::asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes) {
  reply_reader reader;
  reader.feed(bytes);
  std::string const& host = in.clients_[client]->connections.at(serial).host;
  world::slot_table const& known = known_by(in, std::stoul(host.substr(4)));
  std::string said;
  for (reply command; reader.next(command) == reply_reader::result::reply;) {
    if (command.elements.at(0).text != "CLUSTER") in.fail("a scout says " + shortened(bytes));
    ++in.questions_[host];
    std::string text;
    for (std::size_t i = 0; i <= in.others_.size(); ++i) {
      if (in.gone_.contains(i) || in.forgotten_.contains(i)) continue;
      auto const epoch = known.epochs.find(i);
      bool const master = epoch != known.epochs.end();
      text += "id" + std::to_string(i) + in.generation_ + ' ' + node_name(i) + ":1@2" + announced(in, i) + ' ' +
              (master ? "master -" : "slave " + id_of_followed(in, i, in.generation_)) + " 0 0 " +
              std::to_string(master ? epoch->second : 0) + " connected";
      if (known.most_at == i) {  // all but those that are elsewhere
        int first = 0;
        for (auto const& [slot, one] : known.slots) {
          if (one.owner == i) continue;
          if (first < slot) text += ' ' + std::to_string(first) + '-' + std::to_string(slot - 1);
          first = slot + 1;
        }
        if (first < detail::slot_count) text += ' ' + std::to_string(first) + "-16383";
      } else {
        for (auto const& [slot, one] : known.slots)
          if (one.owner == i) text += ' ' + std::to_string(slot);
      }
      text += '\n';
    }
    said += '$' + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  scouts::will_hear(in, client, serial, std::move(said));
}

}  // namespace latchkey::test
