#include <boost/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/json.hpp>
#include <base/kinds.hpp>
#include <base/say.hpp>
#include <cstdio>
#include <iostream>
#include <look/locks.hpp>
#include <look/session.hpp>
#include <options/connection.hpp>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

std::string owner_of(latchkey::holder const& who) {
  return who.owner.empty() ? who.client_id : who.client_id + ':' + who.owner;
}

// `UUID:N`, and the process as its connection says it.
std::string named(latchkey::holder const& who) {
  auto made = quoted(owner_of(who));
  if (who.from && who.from->pid != 0)
    made += " (" + quoted(who.from->program) + ", process " + std::to_string(who.from->pid) + " on " +
            quoted(who.from->host) + ")";
  return made;
}

std::string named(std::vector<latchkey::holder> const& all) {
  std::string made;
  for (auto const& one : all) (made += made.empty() ? "" : ", ") += named(one);
  return made;
}

// By the handle of a kind that wakes those who wait for it.
distributed_lock lock_at(client const& from, session& server, std::string const& name) {
  auto const seen = look_at(server, name);
  bool const no_lock = seen.kind.empty() || seen.kind == plain_or_semaphore;
  if (no_lock && server.ask({"EXISTS", name}).number != 0)
    throw failure(refused, quoted(name) + " is no lock, but a " + server.ask({"TYPE", name}).text);
  if (seen.kind == "plain" && !is_owner(seen.holders.front().owner))
    throw failure(refused, quoted(name) + " is held by another library, whose holders have no name");
  if (seen.kind == "lock" && server.ask({"LLEN", line_of(name)}).number > 0) return lock_of(from, "fair", name);
  return lock_of(from, seen.kind, name);
}

// On a terminal the user is asked; elsewhere nobody is there who could say yes.
bool confirmed(command_line const& line, std::string const& name, std::vector<latchkey::holder> const& who) {
  if (line.has("yes")) return true;
  if (::isatty(STDIN_FILENO) == 0)
    throw failure(wrong_usage,
                  "--yes is missing: nobody is there to confirm that " + named(who) + " is to lose " + quoted(name));
  complain("end the hold of " + named(who) + " on " + quoted(name) + "? The holder may go on working. [y/N]");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

// Those that are meant, of those that are there.
std::vector<latchkey::holder> meant(command_line const& line, std::vector<latchkey::holder> all) {
  if (line.has("any")) return all;
  auto const wanted = *line.text("holder");
  std::erase_if(all, [&](auto const& one) { return owner_of(one) != wanted; });
  return all;
}

void tell(command_line const& line, std::string const& name, std::vector<latchkey::holder> const& ended) {
  for (auto const& one : ended) {
    if (line.has("json")) {
      boost::json::object made{{"schema", 1}, {"name", name}, {"ended", owner_of(one)}, {"count", one.count}};
      made["writes"] = one.writes;
      std::puts(json_text(made).c_str());
    } else {
      std::printf("%s: ended the hold of %s\n", quoted(name).c_str(), named(one).c_str());
    }
  }
}

int force(command_line const& line, client const& from, session& server) {
  auto const& name = line.operands().front();
  auto const lock = lock_at(from, server, name);
  auto const seen = from.inspect(lock).holders;
  auto const wanted = meant(line, seen);
  if (seen.empty()) throw failure(no, line.has("quiet") ? "" : "nobody holds " + quoted(name));
  if (wanted.empty()) throw failure(still_busy, quoted(name) + " is held by another: " + named(seen));
  if (!confirmed(line, name, wanted)) throw failure(wrong_usage, "not confirmed: nothing was changed");
  std::vector<latchkey::holder> ended;
  for (auto const& one : wanted)
    if (lock.force_unlock_if(one)) ended.push_back(one);
  tell(line, name, ended);
  if (!ended.empty()) return yes;
  auto const left = from.inspect(lock).holders;
  if (left.empty()) throw failure(no, line.has("quiet") ? "" : "nobody holds " + quoted(name) + " any more");
  throw failure(still_busy, quoted(name) + " is held by another by now: " + named(left));
}

}  // namespace

int force_unlock(command_line const& line) {
  if (line.has("holder") == line.has("any"))
    throw failure(wrong_usage, "one of --holder UUID:N and --any is needed: status shows the holder");
  if (line.operands().front().empty()) throw failure(wrong_usage, "the name of the lock is empty");
  if (line.has("holder") && !is_owner(*line.text("holder")))
    throw failure(wrong_usage, "--holder is UUID:N, as status shows it, not " + quoted(*line.text("holder")));
  auto const to = connection_of(line);
  session server(to, line.operands().front());
  client const from(to.uri, to.settings);
  try {
    return force(line, from, server);
  } catch (lock_error const& error) {
    auto const said = failure_of("cannot end the hold on " + quoted(line.operands().front()), error);
    if (said.code() != no_permission) throw said;
    throw failure(no_permission,
                  std::string(said.what()) +
                      "; needed: +eval +evalsha +hgetall +get +getrange +strlen +pttl +hget +hlen +llen +exists +del "
                      "+publish and the lock's channel");
  }
}

}  // namespace latchkey::tool
