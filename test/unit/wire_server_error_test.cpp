#include <latchkey/error.hpp>
#include <support/catch.hpp>
#include <wire/server_error.hpp>

#include <string>

using namespace latchkey::detail;
using latchkey::errc;

namespace {

struct row {
  std::string text;
  errc code;
  bool nothing_ran = false;
  bool transient = false;
  bool no_script = false;
  bool reconnect = false;
};

void check(row const& expected) {
  INFO(expected.text);
  auto const got = classify(expected.text);
  CHECK(got.code == expected.code);
  CHECK((got.executed == server_error::ran::no) == expected.nothing_ran);
  CHECK(got.transient == expected.transient);
  CHECK(got.no_script == expected.no_script);
  CHECK(got.reconnect == expected.reconnect);
}

}  // namespace

TEST_CASE("D37: NOSCRIPT asks for the text of the script", "[unit][wire]") {
  check({"NOSCRIPT No matching script. Please use EVAL.", errc::server_error, true, false, true});
}

TEST_CASE("D38-D45: a server that cannot serve just now ran nothing", "[unit][wire]") {
  check({"LOADING Redis is loading the dataset in memory", errc::server_error, true, true});
  check({"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", errc::server_error, true,
         true, false, true});
  check({"READONLY You can't write against a read only replica.", errc::read_only, true, true, false, true});
  check({"NOREPLICAS Not enough good replicas to write.", errc::server_error, true, true});
  check({"MISCONF Redis is configured to save RDB snapshots", errc::server_error, true, true});
  check({"OOM command not allowed when used memory > 'maxmemory'.", errc::server_error, true, true});
  check({"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", errc::server_error,
         true, true});
  check({"ERR max number of clients reached", errc::server_error, true, true});
  check({"ERR max number of clients + cluster connections reached", errc::server_error, true, true});
}

TEST_CASE("D46-D53: what the server refuses to this user stays refused", "[unit][wire]") {
  check({"NOAUTH Authentication required.", errc::auth_failed, true});
  check({"WRONGPASS invalid username-password pair or user is disabled.", errc::auth_failed, true});
  check({"ERR invalid password", errc::auth_failed, true});
  check({"ERR Client sent AUTH, but no password is set", errc::auth_failed, true});
  check({"ERR AUTH <password> called without any password configured for the default user.", errc::auth_failed, true});
  check({"ERR DB index is out of range", errc::auth_failed, true});
  check({"ERR invalid DB index", errc::auth_failed, true});
  check({"NOPERM this user has no permissions to run the 'eval' command", errc::server_error, true});
  check({"NOPERM this user has no permissions to access one of the keys used as arguments", errc::server_error, true});
  check({"DENIED Redis is running in protected mode", errc::server_error, true});
  check({"ERR unknown command 'EVALSHA', with args beginning with: 'x'", errc::server_error, true});
}

TEST_CASE("the answers of a cluster ran nothing", "[unit][wire]") {
  check({"MOVED 3999 127.0.0.1:6381", errc::server_error, true});
  check({"ASK 3999 127.0.0.1:6381", errc::server_error, true});
  check({"TRYAGAIN Multiple keys request during rehashing of slot", errc::server_error, true, true});
  check({"CLUSTERDOWN The cluster is down", errc::server_error, true, true});
  // Inside a script, where Redis 7, Redis 6.2 and Valkey meet a key that none of the KEYS names.
  check({"ERR Script attempted to access a non local key in a cluster node", errc::server_error, true, true});
  check({"@user_script: 41: Lua script attempted to access a non local key in a cluster node", errc::server_error, true,
         true});
  check({"ERR Attempted to access a non local key in a cluster node", errc::server_error, true, true});
  // Of a script that does not catch it.
  check({"ERR Script attempted to access a non local key in a cluster node script: 0, on @user_script:1.",
         errc::server_error, false, true});
  check({"CROSSSLOT Keys in request don't hash to the same slot", errc::cross_slot, true});
}

TEST_CASE("C26: a key of another type is told apart", "[unit][wire]") {
  check({"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_type});
}

TEST_CASE("D49, D54: texts from inside a script are known without a code", "[unit][wire]") {
  check({"ERR The user executing the script can't run this command or subcommand", errc::server_error});
  check({"ERR hash value is not an integer", errc::server_error});
  check({"ERR value is not an integer or out of range", errc::server_error});
  check(
      {"ERR Wrong number of args calling Redis command from script script: "
       "b07573a5f16d541b60a1417a461748719300cb0a, on @user_script:1.",
       errc::server_error});
  // A call inside a script was refused; what the script did before it, the text does not say.
  check(
      {"OOM command not allowed when used memory > 'maxmemory'. script: b07573a5f16d541b60a1417a461748719300cb0a, "
       "on @user_script:1.",
       errc::server_error, false, true});
  check(
      {"READONLY You can't write against a read only replica. script: b07573a5f16d541b60a1417a461748719300cb0a, on "
       "@user_script:1.",
       errc::read_only, false, true, false, true});
  check({"", errc::server_error});
  check({"GARBAGE", errc::server_error});
  check({"BUSYGROUP Consumer Group name already exists", errc::server_error});
  check({"ERRmax number of clients reached", errc::server_error});
}

TEST_CASE("codes are found where servers before Redis 7 put them", "[unit][wire]") {
  check({"-OOM command not allowed when used memory > 'maxmemory'.\r\n", errc::server_error, true, true});
  check({"@user_script: 3: -READONLY You can't write against a read only replica.\r\n", errc::read_only, true, true,
         false, true});
  check({"@user_script: 3: WRONGTYPE Operation against a key", errc::wrong_type});
}
