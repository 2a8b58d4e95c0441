#include <support/unit/world.hpp>

#include <cctype>

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

}  // namespace

stepped_server* sentinels::named(world& in, std::string const& host) {
  if (host.empty()) return in.resolved_;
  std::size_t const number = std::stoul(host.substr(4));
  return number == 0 ? &in.server : in.others_.at(number - 1).get();
}

void sentinels::asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes) {
  reply_reader reader;
  reader.feed(bytes);
  std::string said;
  for (reply command; reader.next(command) == reply_reader::result::reply;) {
    auto const& words = command.elements;
    std::string const& what = words.size() > 1 ? words[1].text : words[0].text;
    std::size_t number = 0;
    for (std::size_t i = 0; i < in.others_.size(); ++i)
      if (in.others_[i].get() == in.resolved_) number = i + 1;
    if (what == "GET-MASTER-ADDR-BY-NAME") said += resp_list({"node" + std::to_string(number), "1"});
    if (what == "MASTER")
      said += resp_list(
          {"name", "m", "config-epoch", std::to_string(in.epoch_), "num-slaves", std::to_string(in.named_replicas)});
    if (what == "SENTINELS") said += "*0\r\n";
    if (what == "+switch-master") said += "*3\r\n" + resp_text("subscribe") + resp_text(what) + ":1\r\n";
  }
  in.events_.push_back({.what = world::token::type::said, .client = client, .serial = serial, .text = std::move(said)});
}

void sentinels::promote(world& in, stepped_server& one, bool announced) {
  in.remember("another server takes over");
  in.resolved_ = &one;
  ++in.epoch_;
  if (!announced) return;
  for (std::size_t i = 0; i < in.clients_.size(); ++i)
    for (auto const& [serial, link] : in.clients_[i]->connections)
      if (link.as == role::scout)
        in.events_.push_back({.what = world::token::type::said,
                              .client = i,
                              .serial = serial,
                              .text = resp_list({"message", "+switch-master", "m a 1 b 2"})});
}

}  // namespace latchkey::test
