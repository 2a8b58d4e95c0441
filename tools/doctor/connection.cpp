#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <doctor/checks.hpp>
#include <doctor/rights.hpp>

namespace latchkey::tool {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

answer one(session& server, command const& words) { return server.ask_all({words}).front(); }

bool is_error(answer const& said) { return said.what == answer::type::error; }

// Refused to a restricted user, without which nobody knows the rest.
void skip_refused(findings& out, std::string_view id, answer const& said) { out.skip(id, "refused: " + said.text); }

std::int64_t to_number(std::string const& text) { return std::atoll(text.c_str()); }

}  // namespace

void check_role(findings& out, session& server) {
  auto const said = one(server, {"ROLE"});
  if (is_error(said) || said.list.empty()) return skip_refused(out, "role", said);
  auto const& role = said.list.front().text;
  if (role == "slave")
    return out.fail("role", "this is a replica, which never grants a lock", "the URI of its primary");
  out.ok("role", role);
}

void check_latency(findings& out, session& server, milliseconds lease) {
  microseconds longest{0};
  for (int i = 0; i < 20; ++i) {
    auto const began = clock::now();
    if (auto const said = one(server, {"PING"}); is_error(said)) return skip_refused(out, "latency", said);
    longest = std::max(longest, std::chrono::duration_cast<microseconds>(clock::now() - began));
  }
  auto const words = "the slowest of 20 answers took " + std::to_string(longest.count()) + " us";
  if (longest > lease / 3) return out.fail("latency", words, "a longer lease");
  if (longest > lease / 10) return out.warn("latency", words, "a longer lease");
  out.ok("latency", words);
}

void check_kill(findings& out, session& server) {
  // Of a connection that cannot exist.
  auto const said = one(server, {"CLIENT", "KILL", "ID", "9223372036854775807"});
  if (is_error(said))
    return out.warn("kill", "late copies of a request cannot be excluded: " + said.text,
                    "ACL SETUSER ... +client|kill");
  out.ok("kill", "connections may be ended");
}

void check_client_list(findings& out, session& server) {
  auto const said = one(server, {"CLIENT", "LIST", "ID", "9223372036854775807"});
  if (is_error(said))
    return out.warn("client-list", "no direct connection for blocking callers: " + said.text,
                    "ACL SETUSER ... +client|list");
  out.ok("client-list", "connections may be looked at");
}

void check_pubsub(findings& out, session& server, doctor_plan const& plan) {
  std::string channel;
  for (auto const& kind : plan.kinds)
    if (channel.empty()) channel = channel_of(rights_of(kind), plan.scratch);
  if (channel.empty()) return out.skip("pubsub", "locks of these kinds send no messages");
  bool const sharded = server.has_sharded_channels();
  auto const subscribe = as_sharded("subscribe", sharded), publish = as_sharded("publish", sharded);
  std::string to_allow = "ACL SETUSER ... +" + subscribe + " +un" + subscribe + " +" + publish;
  for (auto const& kind : plan.kinds)
    if (auto const all = rights_of(kind).channels; !all.empty())
      (to_allow += " &") += filled_in(std::string(all), plan.names());
  auto const remedy = to_allow + ", or a proxy that passes messages on";
  session listens(plan.server, plan.scratch);
  listens.send({subscribe, channel});
  answer said;
  bool const heard = listens.receive(said, milliseconds(1'000));
  if (!heard || is_error(said)) return out.warn("pubsub", heard ? said.text : subscribe + " is not answered", remedy);
  if (auto const told = one(server, {publish, channel, "0"}); is_error(told))
    return out.warn("pubsub", told.text, remedy);
  if (!listens.receive(said, milliseconds(1'000))) return out.warn("pubsub", "no message came within 1 s", remedy);
  out.ok("pubsub", "a message came");
}

void check_clock(findings& out, session& server) {
  std::int64_t first = 0, jump = 0, offset = 0;
  clock::time_point began;
  for (int i = 0; i < 5; ++i) {
    auto const said = one(server, {"TIME"});
    if (is_error(said) || said.list.size() != 2) return skip_refused(out, "clock", said);
    auto const now = clock::now();
    auto const theirs = to_number(said.list[0].text) * 1'000 + to_number(said.list[1].text) / 1'000;
    if (i == 0) {
      first = theirs;
      began = now;
      offset = theirs -
               std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    }
    auto const passed = std::chrono::duration_cast<milliseconds>(now - began).count();
    jump = std::max(jump, std::abs(theirs - first - passed));
  }
  if (jump > 1'000)
    return out.fail("clock",
                    "the server's clock jumped by " + std::to_string(jump) + " ms: leases end too early or late",
                    "let the clock slew (chrony makestep off)");
  out.ok("clock", "differs from ours by " + std::to_string(offset) + " ms, which does no harm");
}

}  // namespace latchkey::tool
