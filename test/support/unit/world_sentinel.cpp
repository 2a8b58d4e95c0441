#include <support/unit/world.hpp>

namespace latchkey::test {

using detail::reply_reader;

namespace {

std::string resp_text(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string resp_list(std::vector<std::string> const& words) {
  std::string made = '*' + std::to_string(words.size()) + "\r\n";
  for (auto const& one : words) made += resp_text(one);
  return made;
}

std::string name_of(std::size_t number) { return number == 0 ? "sentinel" : "sentinel" + std::to_string(number); }

std::string others_than(std::string const& asked, std::size_t count) {
  std::string made = '*' + std::to_string(count - 1) + "\r\n";
  for (std::size_t i = 0; i < count; ++i)
    if (name_of(i) != asked) made += resp_list({"ip", name_of(i), "port", "26379"});
  return made;
}

}  // namespace

stepped_server* sentinels::named(world& in, std::string const& host) {
  if (host.empty()) return in.resolved_;
  std::size_t const number = std::stoul(host.substr(4));
  return number == 0 ? &in.server : in.others_.at(number - 1).get();
}

bool sentinels::outdated(world& in, std::size_t client, std::string const& host) {
  if (in.how_ != world::known::by_sentinel) return false;
  auto const elected = in.epochs_.find(named(in, host));
  return in.clients_[client]->heard > (elected == in.epochs_.end() ? 0 : elected->second);
}

world::election sentinels::known_by(world const& in, std::size_t number) {
  auto const late = in.late_sentinels_.find(number);
  return late == in.late_sentinels_.end() ? elected(in) : late->second;
}

void sentinels::asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes) {
  auto& link = in.clients_[client]->connections.at(serial);
  world::election known = elected(in);
  for (std::size_t i = 0; i < in.sentinel_count; ++i)
    if (name_of(i) == link.host) known = known_by(in, i);
  std::size_t number = 0;
  for (std::size_t i = 0; i < in.others_.size(); ++i)
    if (in.others_[i].get() == known.master) number = i + 1;
  reply_reader reader;
  reader.feed(bytes);
  std::string said;
  std::uint64_t told = 0;
  for (reply command; reader.next(command) == reply_reader::result::reply;) {
    auto const& words = command.elements;
    std::string const& what = words.size() > 1 ? words[1].text : words[0].text;
    if (what == "GET-MASTER-ADDR-BY-NAME") said += resp_list({"node" + std::to_string(number), "1"});
    if (what == "MASTER") {
      said += resp_list(
          {"name", "m", "config-epoch", std::to_string(known.epoch), "num-slaves", std::to_string(in.named_replicas)});
      told = known.epoch;
    }
    if (what == "SENTINELS") said += others_than(link.host, in.sentinel_count);
    if (what == "+switch-master") said += "*3\r\n" + resp_text("subscribe") + resp_text(what) + ":1\r\n";
    link.listens = link.listens || words[0].text == "SUBSCRIBE";
  }
  scouts::will_hear(in, client, serial, std::move(said), told);
}

void sentinels::promote(world& in, stepped_server& one, bool announced) {
  elect(in, one, 0, announced);
  for (std::size_t i = 1; i < in.sentinel_count; ++i) hear(in, i, 0, announced);
}

void sentinels::elect(world& in, stepped_server& one, std::size_t leader, bool announced) {
  in.remember("another server takes over");
  for (std::size_t i = 0; i < in.sentinel_count; ++i)
    if (i != leader) in.late_sentinels_.try_emplace(i, elected(in));
  in.late_sentinels_.erase(leader);
  in.resolved_ = &one;
  in.epochs_[&one] = ++in.epoch_;
  if (announced) announce(in, leader);
}

void sentinels::hear(world& in, std::size_t number, std::size_t from, bool announced) {
  world::election const said = known_by(in, from);
  if (said.epoch <= known_by(in, number).epoch) return;
  in.late_sentinels_[number] = said;
  if (announced) announce(in, number);
}

void sentinels::announce(world& in, std::size_t number) {
  for (std::size_t i = 0; i < in.clients_.size(); ++i)
    for (auto const& [serial, link] : in.clients_[i]->connections)
      if (link.listens && link.host == name_of(number))
        scouts::will_hear(in, i, serial, resp_list({"message", "+switch-master", "m a 1 b 2"}));
}

}  // namespace latchkey::test
