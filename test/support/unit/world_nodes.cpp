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

std::size_t nodes::owner_of(world const& in, std::uint16_t slot) {
  auto const found = in.slots_.find(slot);
  return found == in.slots_.end() ? in.most_at_ : found->second.owner;
}

// Redis: getNodeByQuery.
void nodes::join(world& in, stepped_server& one, std::size_t number) {
  one.redis.version = "7.0.15";
  in.epochs_[number] = number;
  one.elsewhere = [&in, &one, number](stepped_server::words const& command, bool asking) -> std::string {
    auto const keys = keys_of(command);
    if (keys.empty()) return {};
    std::uint16_t const slot = slot_of(keys.front());
    for (auto const& key : keys)
      if (slot_of(key) != slot) return "CROSSSLOT Keys in request don't hash to the same slot";
    auto const found = in.slots_.find(slot);
    std::size_t const moves_to = found == in.slots_.end() ? world::nowhere : found->second.moves_to;
    std::size_t const owner = owner_of(in, slot);
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
  in.slots_[slot] = {owner, to};
}

void nodes::uncover(world& in, std::string_view name) { in.slots_[slot_of(name)] = {world::nowhere}; }

void nodes::cover(world& in, std::string_view name, std::size_t by) {
  in.slots_[slot_of(name)] = {by};
  ++in.epochs_[by];
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
  in.slots_[slot] = {to};
  std::uint64_t most = 0;
  for (auto const& [number, epoch] : in.epochs_) most = std::max(most, epoch);
  in.epochs_[to] = most + 1;
  at(in, before).redis.end_channels([&](std::string_view channel) { return slot_of(channel) == slot; });
}

void nodes::take_over(world& in, std::size_t from, std::size_t to, bool gone) {
  in.remember(node_name(to) + " takes over from " + node_name(from));
  if (in.most_at_ == from) in.most_at_ = to;
  for (auto& [slot, one] : in.slots_) {
    if (one.owner == from) one.owner = to;
    if (one.moves_to == from) one.moves_to = to;
  }
  std::uint64_t most = 0;
  for (auto const& [number, epoch] : in.epochs_) most = std::max(most, epoch);
  in.epochs_.erase(from);
  in.epochs_[to] = most + 1;
  if (gone)
    at(in, from).restart(true);
  else
    at(in, from).redis.end_channels([](std::string_view) { return true; });
}

void nodes::leave(world& in, std::size_t number) {
  in.remember(node_name(number) + " leaves");
  in.epochs_.erase(number);
  in.gone_.insert(number);
  at(in, number).restart(false);
}

bool nodes::has_left(world const& in, std::string const& host) {
  return std::any_of(in.gone_.begin(), in.gone_.end(), [&](std::size_t one) { return node_name(one) == host; });
}

void nodes::asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes) {
  reply_reader reader;
  reader.feed(bytes);
  std::string said;
  for (reply command; reader.next(command) == reply_reader::result::reply;) {
    if (command.elements.at(0).text != "CLUSTER") in.fail("a scout says " + shortened(bytes));
    ++in.questions_[in.clients_[client]->connections.at(serial).host];
    std::string text;
    for (std::size_t i = 0; i <= in.others_.size(); ++i) {
      if (in.gone_.contains(i)) continue;
      bool const master = in.epochs_.contains(i);
      text += "id" + std::to_string(i) + ' ' + node_name(i) + ":1@2" + announced(in, i) + ' ' +
              (master ? "master" : "slave") + " - 0 0 " + std::to_string(master ? in.epochs_[i] : 0) + " connected";
      if (in.most_at_ == i) {  // all but those that are elsewhere
        int first = 0;
        for (auto const& [slot, one] : in.slots_) {
          if (one.owner == i) continue;
          if (first < slot) text += ' ' + std::to_string(first) + '-' + std::to_string(slot - 1);
          first = slot + 1;
        }
        if (first < detail::slot_count) text += ' ' + std::to_string(first) + "-16383";
      } else {
        for (auto const& [slot, one] : in.slots_)
          if (one.owner == i) text += ' ' + std::to_string(slot);
      }
      text += '\n';
    }
    said += '$' + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  in.events_.push_back({.what = world::token::type::said, .client = client, .serial = serial, .text = std::move(said)});
}

}  // namespace latchkey::test
