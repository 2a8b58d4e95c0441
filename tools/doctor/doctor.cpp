#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <doctor/checks.hpp>
#include <doctor/rights.hpp>
#include <look/tls.hpp>
#include <look/topology.hpp>
#include <memory>
#include <random>
#include <sstream>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

std::vector<std::string> read_kinds(command_line const& line) {
  std::istringstream all(line.text("kind").value_or("lock"));
  std::vector<std::string> made;
  for (std::string one; std::getline(all, one, ',');) {
    auto const known = all_rights();
    if (std::none_of(known.begin(), known.end(), [&](auto const& row) { return row.kind == one; }))
      throw failure(wrong_usage, "--kind is a list of kinds with commas between them, not " + quoted(one));
    made.push_back(one);
  }
  if (made.empty()) throw failure(wrong_usage, "--kind is empty");
  return made;
}

doctor_plan plan_of(command_line const& line) {
  doctor_plan plan{connection_of(line), {}, line.text("user").value_or(""), read_kinds(line), {}, {}, {}};
  plan.lease = line.duration("lease", std::chrono::seconds(30), milliseconds(10));
  if (plan.lease == forever) throw failure(wrong_usage, "--lease has an end");
  if (auto const file = line.text("admin-uri-file")) {
    plan.admin = plan.server;
    plan.admin->uri = line_of_file(*file, "--admin-uri-file");
    plan.admin->settings.username.clear();
    plan.admin->settings.password.clear();
  }
  if (!plan.user.empty() && !plan.admin)
    throw failure(wrong_usage, "--user needs --admin-uri-file: others may not ask");
  std::random_device source;
  plan.prefix = line.text("scratch").value_or("latchkey-doctor");
  plan.scratch = plan.prefix + ':' + std::to_string(source());
  return plan;
}

// What `reach` gives; nothing: there is a row that says why.
template <class Reach>
auto reached(findings& out, Reach const& reach) -> decltype(reach()) {
  try {
    return reach();
  } catch (certificate_refused const& error) {
    out.fail("reach", error.what(), "--cacert, or another certificate, by --cert and --key or of the server");
    return {};
  } catch (failure const& error) {
    if (error.code() == unavailable)
      out.fail("reach", error.what(), "the URI; is the server running, is a firewall between?");
    else if (error.code() == no_permission)
      out.fail("auth", error.what(), "user and password, or the rights that it names");
    else
      throw;
    return {};
  }
}

// Null: the server does not take this user.
std::unique_ptr<session> reach(findings& out, doctor_plan const& plan, place const& where) {
  auto made = std::make_unique<session>(plan.server, where);
  auto const said = made->ask_all({{"PING"}}).front();
  bool const unknown = said.what == answer::type::error && said.text.starts_with("NOAUTH");
  out.ok("reach", "the server answers");
  if (unknown) {
    out.fail("auth", said.text, "LATCHKEY_PASSWORD or LATCHKEY_PASSWORD_FILE");
    return nullptr;
  }
  out.ok("auth", where.user.empty() ? "accepted" : "accepted as " + where.user);
  return made;
}

void check_all(findings& out, session& server, doctor_plan const& plan) {
  std::unique_ptr<session> admin;
  if (plan.admin) admin = std::make_unique<session>(*plan.admin, plan.scratch);
  if (admin && admin->in_cluster() != server.in_cluster())
    throw failure(bad_setting,
                  "--admin-uri-file names one server, where LATCHKEY_URI names a cluster, or the other way");
  server_facts facts(admin ? *admin : server);
  check_role(out, server);
  check_version(out, facts);
  check_topology(out, facts);
  check_latency(out, server, plan.lease);
  if (plan.user.empty())
    check_rights(out, server, admin.get(), plan);
  else
    check_rights_of_user(out, *admin, plan);
  check_kill(out, server);
  check_client_list(out, server);
  check_pubsub(out, server, plan);
  check_eviction(out, facts);
  check_memory(out, facts);
  check_persistence(out, facts);
  check_replicas(out, facts);
  check_clock(out, server);
  check_keyspace(out, facts.asked());
  check_idle(out, facts, plan.server.settings.ping_interval);
  check_pubsub_buffer(out, facts);
  check_slow(out, facts, plan.lease);
}

}  // namespace

int doctor(command_line const& line) {
  auto const plan = plan_of(line);
  findings out(line.has("json"), line.has("strict"));
  for (auto const& one : reached(out, [&] { return servers_of(plan.server); })) {
    if (!one.slots.empty()) out.at(one.at.host + ':' + std::to_string(one.at.port));
    try {
      auto const server = reached(out, [&] { return reach(out, plan, one.at); });
      if (!server) continue;
      auto here = plan;
      here.scratch = name_at(one, *server, plan.scratch);
      check_all(out, *server, here);
    } catch (failure const& error) {
      if (error.code() != unavailable) throw;
      out.fail("reach", error.what(), "the server went away in the middle");
    }
  }
  return out.bad() ? no : yes;
}

}  // namespace latchkey::tool
