#include <charconv>
#include <doctor/checks.hpp>
#include <sstream>

namespace latchkey::tool {
namespace {

constexpr std::string_view no_info = "INFO is refused";
constexpr std::string_view no_config = "CONFIG is refused";

std::int64_t number_of(std::string_view text) {
  std::int64_t made = 0;
  std::from_chars(text.data(), text.data() + text.size(), made);
  return made;
}

}  // namespace

std::optional<std::string> server_facts::info(std::string const& name) {
  if (!all_) all_ = "\n" + asked_.ask_all({{"INFO"}}).front().text;
  auto const key = '\n' + name + ':';
  auto const at = all_->find(key);
  if (at == all_->npos) return {};
  auto const from = at + key.size();
  return all_->substr(from, all_->find_first_of("\r\n", from) - from);
}

std::optional<std::int64_t> server_facts::number(std::string const& name) {
  auto const text = info(name);
  if (!text) return {};
  std::int64_t made = 0;
  auto const* const end = text->data() + text->size();
  auto const read = std::from_chars(text->data(), end, made);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return made;
}

std::optional<std::string> server_facts::setting(std::string const& name) {
  auto const found = asked_.ask_all({{"CONFIG", "GET", name}}).front();
  if (found.what != answer::type::list || found.list.size() != 2) return {};
  return found.list[1].text;
}

void check_version(findings& out, server_facts& facts) {
  if (!facts.info("redis_mode") && !facts.info("redis_version")) return out.skip("version", no_info);
  auto const version = facts.info("redis_version").value_or("");
  auto const point = version.find('.');
  auto const major = number_of(version), minor = point == version.npos ? 0 : number_of(version.substr(point + 1));
  if (major == 0) return out.warn("version", "the server does not say which it is", "Redis 6.2 or later is known");
  if (major < 6 || (major == 6 && minor < 2)) return out.fail("version", version, "upgrade to 6.2 or later");
  out.ok("version", version);
}

void check_eviction(findings& out, server_facts& facts) {
  auto const most = facts.number("maxmemory");
  auto const policy = facts.info("maxmemory_policy");
  if (!most || !policy) return out.skip("eviction", no_info);
  if (*most > 0 && *policy != "noeviction")
    return out.fail("eviction", "maxmemory-policy is " + *policy + ": a lock that is held may be evicted",
                    "noeviction, or a server of its own");
  out.ok("eviction", *most > 0 ? "noeviction" : "maxmemory is not set");
}

void check_memory(findings& out, server_facts& facts) {
  auto const evicted = facts.number("evicted_keys"), used = facts.number("used_memory"),
             most = facts.number("maxmemory");
  if (!evicted || !used || !most) return out.skip("memory", no_info);
  if (*evicted > 0) return out.warn("memory", std::to_string(*evicted) + " keys were evicted", "more memory");
  if (*most > 0 && *used > *most / 10 * 9)
    return out.warn("memory", std::to_string(*used / (*most / 100 + 1)) + " % of maxmemory is used", "more memory");
  out.ok("memory", std::to_string(*used / 1'048'576) + " MiB are used");
}

void check_persistence(findings& out, server_facts& facts) {
  auto const file = facts.info("aof_enabled");
  if (!file) return out.skip("persistence", no_info);
  if (facts.info("rdb_last_bgsave_status") == "err") {
    auto const stops = facts.setting("stop-writes-on-bgsave-error"), saves = facts.setting("save");
    constexpr std::string_view failed = "the last snapshot failed", remedy = "the server's log says why; then BGSAVE";
    if (stops == "no" || saves == "") return out.warn("persistence", failed, remedy);
    bool const known = stops && saves;
    auto const words = std::string(failed) + (known ? ", and writes are refused (MISCONF)"
                                                    : "; whether writes are refused is not known: CONFIG is refused");
    return out.add(known ? verdict::fail : verdict::warn, "persistence", words, remedy);
  }
  if (*file == "0")
    return out.warn("persistence", "no append-only file: a restart frees locks",
                    "appendonly yes and appendfsync always, or let a restarted server stay away for one lease");
  auto const sync = facts.setting("appendfsync");
  out.ok("persistence", sync ? "appendfsync is " + *sync : "an append-only file is written");
}

void check_replicas(findings& out, server_facts& facts) {
  auto const count = facts.number("connected_slaves");
  if (!count) return out.skip("replicas", no_info);
  if (*count == 0) return out.ok("replicas", "none");
  auto const needed = facts.setting("min-replicas-to-write");
  if (!needed) return out.skip("replicas", no_config);
  if (*needed == "0")
    return out.warn("replicas",
                    std::to_string(*count) + " replicas, and none is needed to write: a failover loses locks",
                    "min-replicas-to-write 1, and fenced locks");
  out.ok("replicas", std::to_string(*count) + ", of which " + *needed + " must be there");
}

void check_idle(findings& out, server_facts& facts, milliseconds ping_interval) {
  auto const limit = facts.setting("timeout");
  if (!limit) return out.skip("idle", no_config);
  auto const seconds = number_of(*limit);
  if (seconds > 0 && std::chrono::seconds(seconds) < ping_interval)
    return out.warn("idle", "connections are closed after " + *limit + " s, sooner than clients ping", "timeout 0");
  out.ok("idle", seconds == 0 ? "idle connections stay" : "closed after " + *limit + " s");
}

void check_pubsub_buffer(findings& out, server_facts& facts) {
  constexpr std::int64_t least = 1'048'576;
  auto const limits = facts.setting("client-output-buffer-limit");
  if (!limits) return out.skip("pubsub-buffer", no_config);
  std::istringstream words(*limits);
  for (std::string word; words >> word;) {
    std::int64_t hard = 0, soft = 0;
    if (word != "pubsub" || !(words >> hard >> soft)) continue;
    if ((hard > 0 && hard < least) || (soft > 0 && soft < least))
      return out.warn("pubsub-buffer",
                      "a burst of " + std::to_string(soft > 0 && (hard == 0 || soft < hard) ? soft : hard) +
                          " bytes ends a connection for messages",
                      "client-output-buffer-limit pubsub 32mb 8mb 60");
    return out.ok("pubsub-buffer", std::to_string(hard) + ' ' + std::to_string(soft));
  }
  out.skip("pubsub-buffer", "the server does not say it");
}

void check_slow(findings& out, server_facts& facts, milliseconds lease) {
  auto const log = facts.asked().ask_all({{"SLOWLOG", "GET", "128"}}).front();
  if (log.what != answer::type::list) return out.skip("slow", "SLOWLOG is refused");
  std::int64_t longest = 0;
  for (auto const& entry : log.list)
    if (entry.list.size() > 2) longest = std::max(longest, entry.list[2].number);
  auto const words = "the slowest command of late took " + std::to_string(longest / 1'000) + " ms";
  if (longest > lease.count() * 100)
    return out.warn("slow", words, "find it by SLOWLOG GET: while it runs nothing is renewed");
  out.ok("slow", words);
}

void check_topology(findings& out, server_facts& facts) {
  auto const mode = facts.info("redis_mode");
  if (!mode) return out.skip("topology", no_info);
  if (facts.asked().in_cluster()) {
    auto const said = facts.asked().ask_all({{"CLUSTER", "INFO"}}).front();
    if (said.what == answer::type::error) return out.skip("topology", "refused: " + said.text);
    auto const says = [&](std::string_view line) { return said.text.find(line) != said.text.npos; };
    if (!says("cluster_slots_assigned:16384"))
      return out.fail("topology", "a node of a cluster in which some slots have no node", "redis-cli --cluster fix");
    if (!says("cluster_state:ok"))
      return out.fail("topology", "a node that takes no commands: it sees no majority, or slots whose node has failed",
                      "redis-cli --cluster check");
    return out.ok("topology", "a node of a cluster in which every slot has one");
  }
  if (*mode != "standalone")
    return out.fail("topology", "this is one node of a " + *mode + ", and clients of this URI would know no other",
                    "redis-" + *mode + "://");
  out.ok("topology", "one server");
}

}  // namespace latchkey::tool
