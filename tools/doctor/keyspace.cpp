#include <base/say.hpp>
#include <doctor/checks.hpp>
#include <look/locks.hpp>

namespace latchkey::tool {
namespace {

// A look at so many keys takes a second at most.
constexpr std::size_t most_keys = 10'000;
// Pages may be empty, and what is no Redis server may never come to an end.
constexpr int most_pages_of_keys = 1'000;
constexpr std::size_t most_told = 5;

struct companion {
  std::string_view prefix, type;
};
// What stands beside the hash of a lock, and names it.
constexpr companion companions[] = {
    {"redisson_lock_queue:", "list"}, {"redisson_lock_timeout:", "zset"}, {"redisson_lock_token:", "string"}};

// `prefix:{name}`; empty: that is none.
std::string named_by(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return {};
  key.remove_prefix(prefix.size());
  if (key.starts_with('{') && key.ends_with('}')) key = key.substr(1, key.size() - 2);
  return std::string(key);
}

struct troubles {
  std::vector<std::string> wrong, endless;
};

void look_at_companion(session& server, std::string const& key, troubles& found) {
  for (auto const& one : companions) {
    auto const name = named_by(key, one.prefix);
    if (name.empty()) continue;
    auto const types = server.ask_all({{"TYPE", key}, {"TYPE", name}});
    if (types[0].text != one.type && types[0].text != "none")
      found.wrong.push_back(quoted(key) + " is a " + types[0].text);
    if (types[1].text != "hash" && types[1].text != "none")
      found.wrong.push_back(quoted(name) + " is a " + types[1].text);
  }
}

void look_at_hash(session& server, std::string const& key, troubles& found) {
  auto const size = server.ask_all({{"HLEN", key}}).front();
  if (size.number < 1 || size.number > 4'096) return;
  auto const seen = server.ask_all({{"HGETALL", key}, {"PTTL", key}});
  if (seen[1].number == -1 && read_hash(key, seen[0].list)) found.endless.push_back(quoted(key));
}

std::string some_of(std::vector<std::string> const& all) {
  std::string made;
  for (std::size_t i = 0; i < all.size() && i < most_told; ++i) made += (i == 0 ? "" : ", ") + all[i];
  return made + (all.size() > most_told ? " and " + std::to_string(all.size() - most_told) + " more" : "");
}

}  // namespace

void check_keyspace(findings& out, session& server) {
  troubles found;
  std::size_t seen = 0;
  int pages = 0;
  std::string cursor = "0";
  do {
    auto const page = server.ask_all({{"SCAN", cursor, "COUNT", "512"}}).front();
    if (page.what != answer::type::list || page.list.size() != 2) return out.skip("keyspace", "refused: " + page.text);
    cursor = page.list[0].text;
    seen += page.list[1].list.size();
    for (auto const& key : page.list[1].list) {
      look_at_companion(server, key.text, found);
      look_at_hash(server, key.text, found);
    }
  } while (cursor != "0" && seen < most_keys && ++pages < most_pages_of_keys);
  if (!found.wrong.empty())
    return out.fail("keyspace", some_of(found.wrong) + ": where a lock is to be", "rename the key or the lock");
  if (!found.endless.empty())
    return out.warn("keyspace", some_of(found.endless) + ": without a time to live, held for ever",
                    "force-unlock it, or rename what is no lock");
  out.ok("keyspace", std::to_string(seen) + " keys looked at" + (cursor == "0" ? "" : "; then the look was cut short"));
}

}  // namespace latchkey::tool
