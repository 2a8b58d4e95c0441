#pragma once

#include <doctor/findings.hpp>
#include <doctor/plan.hpp>

namespace latchkey::tool {

// Each makes one row of the table, or one for each kind. `facts` are what the admin's connection says, if there is one.

// What every client needs.
void check_role(findings& out, session& server);
void check_version(findings& out, server_facts& facts);
void check_latency(findings& out, session& server, milliseconds lease);
void check_kill(findings& out, session& server);
void check_client_list(findings& out, session& server);
void check_pubsub(findings& out, session& server, doctor_plan const& plan);

// What is really used on scratch names; and what the server says that a user may.
// An admin's connection, if there is one, tells which right it is.
void check_rights(findings& out, session& server, session* admin, doctor_plan const& plan);
// In the server's words; empty: nothing. What slows: without it locks are had, but late.
struct refused_rights {
  std::string needed, slows;
};
refused_rights rights_refused(session& admin, std::string const& user, std::string_view kind, std::string const& name);
void check_rights_of_user(findings& out, session& admin, doctor_plan const& plan);

// What the server is set to.
void check_eviction(findings& out, server_facts& facts);
void check_memory(findings& out, server_facts& facts);
void check_persistence(findings& out, server_facts& facts);
void check_replicas(findings& out, server_facts& facts);
void check_idle(findings& out, server_facts& facts, milliseconds ping_interval);
void check_pubsub_buffer(findings& out, server_facts& facts);
void check_slow(findings& out, server_facts& facts, milliseconds lease);
void check_topology(findings& out, server_facts& facts);

// What it does and has.
void check_clock(findings& out, session& server);
void check_keyspace(findings& out, session& server);

}  // namespace latchkey::tool
