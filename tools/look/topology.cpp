#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/say.hpp>
#include <cstdlib>
#include <exception>
#include <look/session.hpp>
#include <look/topology.hpp>
#include <tuple>
#include <utility>

namespace latchkey::tool {
namespace {

place node_of(place const& where, std::string const& host, int port) {
  return {{}, host, port, where.user, where.password, {}, {}, {}, {}, {}, {}};
}

// What the first of them says that answers.
template <class Ask>
auto ask_first(std::vector<std::pair<std::string, int>> const& servers, Ask const& ask) {
  std::exception_ptr last;
  for (auto const& [host, port] : servers) try {
      return ask(host, port);
    } catch (failure const&) {
      last = std::current_exception();  // as it is: restarts look at its type
    }
  std::rethrow_exception(last);
}

place read_uri(connection const& to) {
  try {
    client const reads_the_uri(to.uri, to.settings);
  } catch (lock_error const& error) {
    throw failure_of("cannot use the server", error);
  }
  auto where = place_of(to.uri);
  if (where.user.empty()) where.user = to.settings.username;
  if (where.password.empty()) where.password = to.settings.password;
  return where;
}

std::pair<std::string, int> ask_sentinels(connection const& to, place const& where) {
  return ask_first(where.sentinels, [&](std::string const& host, int port) {
    session sentinel(to, place{{}, host, port, where.sentinel_user, where.sentinel_password, {}, {}, {}, {}, {}, {}});
    auto const found = sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", where.master}).list;
    if (found.size() != 2)
      throw failure(unavailable,
                    "the sentinel at " + quoted(sentinel.where()) + " knows no master " + quoted(where.master));
    return std::pair(found[0].text, std::atoi(found[1].text.c_str()));
  });
}

constexpr char const* rights_to_find_it = "+cluster|slots +cluster|keyslot";

std::vector<lock_server> masters_of(session& node, place const& where, std::string const& host) {
  std::vector<lock_server> all;
  for (auto const& range : node.ask({"CLUSTER", "SLOTS"}).list) {
    if (range.list.size() < 3 || range.list[2].list.size() < 2) node.strange();
    auto const& address = range.list[2].list;
    auto const there = address[0].text.empty() ? host : address[0].text;
    auto const port = static_cast<int>(address[1].number);
    auto known = std::find_if(all.begin(), all.end(),
                              [&](auto const& one) { return one.at.host == there && one.at.port == port; });
    if (known == all.end()) {
      known = all.insert(all.end(), {where, {}});
      known->at.host = there;
      known->at.port = port;
    }
    known->slots.emplace_back(range.list[0].number, range.list[1].number);
  }
  return all;
}

bool has(lock_server const& one, std::int64_t slot) {
  return std::any_of(one.slots.begin(), one.slots.end(),
                     [&](auto const& range) { return range.first <= slot && slot <= range.second; });
}

place find_node(connection const& to, place const& where, std::string const& name) {
  return ask_first(where.nodes, [&](std::string const& host, int port) {
    session node(to, node_of(where, host, port));
    return with_rights(rights_to_find_it, [&] {
      auto const all = masters_of(node, where, host);
      auto const slot = node.ask_number({"CLUSTER", "KEYSLOT", name});
      auto const found = std::find_if(all.begin(), all.end(), [&](auto const& one) { return has(one, slot); });
      if (found == all.end()) throw failure(unavailable, "no node of the cluster has the slot of " + quoted(name));
      return found->at;
    });
  });
}

}  // namespace

place place_of(connection const& to, std::string const& name) {
  auto where = read_uri(to);
  if (!where.master.empty()) std::tie(where.host, where.port) = ask_sentinels(to, where);
  return where.nodes.empty() ? where : find_node(to, where, name);
}

std::vector<lock_server> servers_of(connection const& to) {
  auto const where = read_uri(to);
  if (where.nodes.empty()) return {{place_of(to, {}), {}}};
  return ask_first(where.nodes, [&](std::string const& host, int port) {
    session node(to, node_of(where, host, port));
    auto all = with_rights(rights_to_find_it, [&] { return masters_of(node, where, host); });
    if (all.empty()) throw failure(unavailable, "no node has any slot, says " + quoted(node.where()));
    return all;
  });
}

// They are tried by the thousand: a master may have one slot.
std::string name_at(lock_server const& one, session& there, std::string const& prefix) {
  constexpr int at_once = 1'000, most = 200'000;
  if (one.slots.empty()) return prefix;
  for (int number = 0; number < most; number += at_once) {
    std::vector<command> questions;
    for (int i = 0; i < at_once; ++i)
      questions.push_back({"CLUSTER", "KEYSLOT", prefix + ':' + std::to_string(number + i)});
    auto const answers = there.ask_all(questions);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].what == answer::type::error)
        with_rights(rights_to_find_it, [&] { there.refuse(answers[i].text); });
      if (has(one, answers[i].number)) return questions[i].back();
    }
  }
  throw failure(bad_setting, "no name that begins with " + quoted(prefix) + " is on " + quoted(there.where()) +
                                 ": in a cluster it must not have braces");
}

}  // namespace latchkey::tool
