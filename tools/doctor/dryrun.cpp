#include <doctor/checks.hpp>
#include <doctor/rights.hpp>

namespace latchkey::tool {
namespace {

// The command with as many words as it wants at least; where keys stand it is asked with the lock's name.
command filled(session& admin, std::string const& word, std::string const& name) {
  command made;
  auto const bar = word.find('|');
  made.push_back(word.substr(0, bar));
  if (bar != word.npos) made.push_back(word.substr(bar + 1));
  if (word == "eval" || word == "evalsha") {
    made.insert(made.end(), {"return 1", "0"});
    return made;
  }
  auto const about = admin.ask_all({{"COMMAND", "INFO", word}}).front();
  std::int64_t arity = 2;
  if (!about.list.empty() && about.list[0].list.size() > 1) arity = about.list[0].list[1].number;
  auto const count = static_cast<std::size_t>(arity < 0 ? -arity : arity);
  while (made.size() < count) made.push_back(name);
  return made;
}

// What the server says against this; empty: nothing.
std::string words_against(session& admin, std::string const& user, std::string const& word, std::string const& name) {
  command dry{"ACL", "DRYRUN", user};
  auto const asked = filled(admin, word, name);
  dry.insert(dry.end(), asked.begin(), asked.end());
  auto const said = admin.ask_all({dry}).front();
  return said.text == "OK" ? std::string() : said.text;
}

// The keys of a kind, each looked at by a command that every kind needs; wildcards stand for anything.
std::string refused_key(session& admin, std::string const& user, kind_rights const& kind, std::string const& name) {
  auto const by = kind.kind == "semaphore" ? "get" : "pttl";
  for (auto key : words_of(filled_in(std::string(kind.keys), name))) {
    key = filled_in(key, name);
    if (key.ends_with('*')) key.back() = 'x';
    if (auto why = words_against(admin, user, by, key); !why.empty()) return why;
  }
  return {};
}

}  // namespace

refused_rights rights_refused(session& admin, std::string const& user, std::string_view kind, std::string const& name) {
  auto const& needed = rights_of(kind);
  auto const channel = channel_of(needed, name);
  refused_rights found;
  bool const sharded = admin.has_sharded_channels();
  auto const cluster = admin.in_cluster() ? rights_in_a_cluster : std::string_view();
  for (auto const list : {rights_to_run_scripts, rights_of_every_client, cluster, needed.commands})
    for (auto const& word : words_of(list)) {
      bool const message = is_of_messages(word);
      if (message && channel.empty()) continue;
      auto const why = words_against(admin, user, as_sharded(word, sharded), message ? channel : name);
      if (why.empty()) continue;
      bool const of_clients = word.starts_with("client|") || word.starts_with("script|");
      (message || of_clients ? found.slows : found.needed) = why;
      if (!found.needed.empty()) return found;
    }
  found.needed = refused_key(admin, user, needed, name);
  return found;
}

void check_rights_of_user(findings& out, session& admin, doctor_plan const& plan) {
  for (auto const& kind : plan.kinds) {
    auto const id = "rights." + kind;
    auto const remedy = "ACL SETUSER " + plan.user + ' ' + acl_words(admin, kind, plan.names());
    auto const found = rights_refused(admin, plan.user, kind, plan.scratch);
    if (!found.needed.empty())
      out.fail(id, found.needed, remedy);
    else if (!found.slows.empty())
      out.warn(id, found.slows, remedy);
    else
      out.ok(id, plan.user + " may do all that it takes");
  }
}

}  // namespace latchkey::tool
