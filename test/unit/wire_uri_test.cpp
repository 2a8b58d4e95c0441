#include <latchkey/error.hpp>
#include <support/catch.hpp>
#include <wire/uri.hpp>

#include <string>
#include <vector>

using namespace latchkey::detail;
using latchkey::errc;

namespace {

// The words of the error; empty if there is none.
std::string problem_of(std::string const& uri) {
  try {
    parse_uri(uri);
    return {};
  } catch (latchkey::lock_error const& error) {
    CHECK(error.code() == errc::bad_uri);
    return error.server_text();
  }
}

}  // namespace

TEST_CASE("a URI of a TCP server is taken apart", "[unit][wire]") {
  struct row {
    std::string uri, host;
    int port;
    std::string user, password;
    int database;
  };
  auto const [uri, host, port, user, password, database] = GENERATE(values<row>({
      {"redis://localhost", "localhost", 6379, "", "", -1},
      {"redis://localhost/", "localhost", 6379, "", "", -1},
      {"REDIS://localhost", "localhost", 6379, "", "", -1},
      {"redis://127.0.0.1:7000", "127.0.0.1", 7000, "", "", -1},
      {"redis://host:1/0", "host", 1, "", "", 0},
      {"redis://host:65535/15", "host", 65535, "", "", 15},
      {"redis://:secret@host", "host", 6379, "", "secret", -1},
      {"redis://alice:secret@host:1234/2", "host", 1234, "alice", "secret", 2},
      {"redis://alice@host", "host", 6379, "alice", "", -1},
      {"redis://alice:@host", "host", 6379, "alice", "", -1},
      {"redis://@host", "host", 6379, "", "", -1},
      {"redis://al%3Aice:p%40s%2Fs%3aw%25%20rd@host", "host", 6379, "al:ice", "p@s/s:w% rd", -1},
      {"redis://:gr%C3%BC%C3%9Fe@host", "host", 6379, "",
       "gr\xc3\xbc\xc3\x9f"
       "e",
       -1},
      {"redis://[::1]", "::1", 6379, "", "", -1},
      {"redis://[::1]:7000/3", "::1", 7000, "", "", 3},
      {"redis://u:p@[2001:db8::1]:7000", "2001:db8::1", 7000, "u", "p", -1},
      {"redis://[fe80::1%25eth0]:7000", "fe80::1%eth0", 7000, "", "", -1},
      {"redis://[::ffff:10.0.0.1]", "::ffff:10.0.0.1", 6379, "", "", -1},
      {"redis://redis-1.example_x.org.", "redis-1.example_x.org.", 6379, "", "", -1},
  }));
  INFO(uri);
  auto const got = parse_uri(uri);
  CHECK(got.how == target::scheme::tcp);
  CHECK(got.host == host);
  CHECK(got.port == port);
  CHECK(got.username == user);
  CHECK(got.password == password);
  CHECK(got.database == database);
}

TEST_CASE("a URI of a Unix socket is taken apart", "[unit][wire]") {
  auto const plain = parse_uri("unix:///run/redis.sock");
  CHECK(plain.how == target::scheme::unix_socket);
  CHECK(plain.path == "/run/redis.sock");
  CHECK(plain.database == -1);
  auto const with = parse_uri("unix:///run/a%20b%3F.sock?db=7");
  CHECK(with.path == "/run/a b?.sock");
  CHECK(with.database == 7);
  CHECK(parse_uri("unix:///" + std::string(106, 'x')).path.size() == 107);
}

TEST_CASE("a URI of an embedded server is one word", "[unit][wire]") {
  CHECK(parse_uri("embedded:").how == target::scheme::embedded);
  CHECK(parse_uri("Embedded:").how == target::scheme::embedded);
}

TEST_CASE("A1: a URI that cannot be read is refused with the position", "[unit][wire]") {
  auto const [uri, position, words] = GENERATE(table<std::string, int, std::string>({
      {"", 1, "empty"},
      {"localhost", 1, "no scheme"},
      {"localhost:6379", 1, "unknown scheme"},
      {"http://localhost", 1, "unknown scheme"},
      {"://localhost", 1, "unknown scheme"},
      {" redis://localhost", 1, "blanks"},
      {"redis://local host", 14, "blanks"},
      {"redis://host\r\n", 13, "blanks"},
      {"redis:", 7, "two slashes"},
      {"redis:host", 7, "two slashes"},
      {"redis:/host", 7, "two slashes"},
      {"redis://", 9, "no host"},
      {"redis:///0", 9, "no host"},
      {"redis://:6379", 9, "no host"},
      {"redis://user:word@", 19, "no host"},
      {"redis://user:word@:6379", 19, "no host"},
      {"redis://host:", 14, "port"},
      {"redis://host:0", 14, "port"},
      {"redis://host:65536", 14, "port"},
      {"redis://host:99999999999999999999", 14, "port"},
      {"redis://host:text", 14, "port"},
      {"redis://host:-1", 14, "port"},
      {"redis://host:+1", 14, "port"},
      {"redis://host:1x/0", 14, "port"},
      {"redis://::1", 10, "brackets"},
      {"redis://2001:db8::1", 17, "brackets"},
      {"redis://[::1", 9, "not closed"},
      {"redis://[]", 10, "no host"},
      {"redis://[]:6379", 10, "no host"},
      {"redis://[::1]x", 14, "only a port"},
      {"redis://[::1]:", 15, "port"},
      {"redis://[::g]", 12, "IPv6"},
      {"redis://[host]", 10, "IPv6"},
      {"redis://[10.0.0.1]", 10, "only an IPv6"},
      {"redis://ho[st", 11, "host name"},
      {"redis://host%2", 13, "hexadecimal"},
      {"redis://host%zz", 13, "hexadecimal"},
      {"redis://host%00", 13, "zero byte"},
      {"redis://u%:p@host", 10, "hexadecimal"},
      {"redis://u:p%1@host", 12, "hexadecimal"},
      {"redis://u:p@q@host", 14, "%40"},
      {"redis://u:p:q@host", 12, "%3A"},
      {"redis://u:p/q@host", 12, "%2F"},
      {"redis://host/-1", 14, "database"},
      {"redis://host/+1", 14, "database"},
      {"redis://host/x", 14, "database"},
      {"redis://host/1/", 14, "database"},
      {"redis://host/1x", 14, "database"},
      {"redis://host/2147483648", 14, "database"},
      {"redis://host//", 14, "database"},
      {"redis://host?db=1", 13, "parameters"},
      {"redis://host/1?x", 15, "parameters"},
      {"redis://host/1#x", 15, "parameters"},
      {"redis://" + std::string(256, 'h'), 264, "too long"},
      {"unix:", 6, "two slashes"},
      {"unix://", 8, "no host"},
      {"unix://run/redis.sock", 8, "slash"},
      {"unix://?db=1", 8, "slash"},
      {"unix:///", 9, "no path"},
      {"unix:///a%0", 10, "hexadecimal"},
      {"unix:///a%00", 10, "zero byte"},
      {"unix:///a?db=-1", 14, "database"},
      {"unix:///a?db=", 14, "database"},
      {"unix:///a?bd=1", 11, "db="},
      {"unix:///a?", 11, "db="},
      {"unix:///a?db=1&x=2", 14, "database"},
      {"unix:///a#b", 10, "%23"},
      {"unix:///" + std::string(107, 'x'), 115, "too long"},
      {"embedded", 1, "no scheme"},
      {"embedded://", 10, "nothing can follow"},
  }));
  INFO(uri);
  auto const problem = problem_of(uri);
  INFO(problem);
  CHECK(problem.find(words) != std::string::npos);
  CHECK(problem.find("at character " + std::to_string(position) + " of") != std::string::npos);
}

TEST_CASE("A1: rediss is redis by TLS", "[unit][wire]") {
  auto const by_tls = parse_uri("RedisS://u:p@host:1/2");
  CHECK(by_tls.tls);
  CHECK(by_tls.how == target::scheme::tcp);
  CHECK(by_tls.host == "host");
  CHECK(by_tls.port == 1);
  CHECK(by_tls.username == "u");
  CHECK(by_tls.password == "p");
  CHECK(by_tls.database == 2);
  CHECK(parse_uri("rediss://[::1]").port == 6379);
  CHECK_FALSE(parse_uri("redis://host").tls);
  CHECK_FALSE(parse_uri("unix:///a").tls);
}

TEST_CASE("A1: sentinels are a list of hosts and the name of a master", "[unit][wire]") {
  using at = std::vector<node_address>;
  auto const one = parse_uri("RedisS-Sentinel://u:p%40@host:1/main/3");
  CHECK(one.how == target::scheme::sentinel);
  CHECK(one.tls);
  CHECK(one.seeds == at{{"host", 1}});
  CHECK(one.master == "main");
  CHECK(one.database == 3);
  CHECK(one.username == "u");
  CHECK(one.password == "p@");
  CHECK(one.sentinel_username.empty());
  auto const more = parse_uri("redis-sentinel://a,[::1]:5,b:6/m%2Fn?sentinel_password=x%26y&sentinel_user=w");
  CHECK_FALSE(more.tls);
  CHECK(more.seeds == at{{"a", 26'379}, {"::1", 5}, {"b", 6}});
  CHECK(more.master == "m/n");
  CHECK(more.database == -1);
  CHECK(more.sentinel_username == "w");
  CHECK(more.sentinel_password == "x&y");
}

TEST_CASE("A1: what is wrong with a list of sentinels is said", "[unit][wire]") {
  auto const [uri, words] = GENERATE(table<std::string, std::string>({
      {"redis-sentinel://host", "name of the master is missing"},
      {"redis-sentinel://host/", "name of the master is missing"},
      {"redis-sentinel://host//1", "name of the master is missing"},
      {"redis-sentinel:///m", "no host"},
      {"redis-sentinel://a,,b/m", "no host"},
      {"redis-sentinel://a,/m", "no host"},
      {"redis-sentinel://a:x/m", "port"},
      {"redis-sentinel://a/m/x", "database"},
      {"redis-sentinel://a/m?x=1", "sentinel_user="},
      {"redis-sentinel://a/m?sentinel_user=a&sentinel_user=b", "twice"},
      {"redis-sentinel://a/m#x", "%23"},
  }));
  INFO(uri);
  auto const problem = problem_of(uri);
  INFO(problem);
  CHECK(problem.find(words) != std::string::npos);
  CHECK(problem.find("at character ") != std::string::npos);
}

TEST_CASE("A1: nodes of a cluster", "[unit][wire]") {
  auto const one = parse_uri("redis-cluster://u:p%40@a:1,b,[::1]:3/0");
  CHECK(one.how == target::scheme::cluster);
  CHECK(one.seeds == std::vector<node_address>{{"a", 1}, {"b", 6379}, {"::1", 3}});
  CHECK(one.username == "u");
  CHECK(one.password == "p@");
  CHECK_FALSE(one.tls);
  CHECK(parse_uri("rediss-cluster://host").tls);
  CHECK(problem_of("redis-cluster://a/1").find("only database 0") != std::string::npos);
  CHECK(problem_of("redis-cluster://a?x=1").find("no parameters") != std::string::npos);
  CHECK(problem_of("redis-cluster://a,/0").find("no host") != std::string::npos);
  CHECK(problem_of("rediss:host").find("two slashes") != std::string::npos);
}

TEST_CASE("A1: no part of a password shows, wherever the URI is wrong", "[unit][wire]") {
  for (std::string const uri : {"redis://u:hunter2@",
                                "redis://u:hunter2@host:0",
                                "redis://u:hunter2@host/x",
                                "redis://u:hunter2@host?x",
                                "redis://u:hunter2@@host",
                                "redis://u:hunter2:x@host",
                                "redis://u:hunter2/x@host",
                                "redis://:hunter2%@host",
                                "redis://:hunter2",
                                "hunter2@host:1",
                                "hunter2:",
                                "redis:hunter2@host",
                                "redis://u:hunter2 @host",
                                "rediss://u:hunter2@host:x",
                                "redis-sentinel://u:hunter2@a,b:x/m",
                                "redis-sentinel://a/m?sentinel_password=hunter2&x",
                                "unix://hunter2@/a",
                                "embedded:hunter2",
                                "redis://[hunter2",
                                "redis://[::1]hunter2"}) {
    INFO(uri);
    try {
      parse_uri(uri);
      FAIL("was accepted");
    } catch (latchkey::lock_error const& error) {
      CHECK(std::string(error.what()).find("hunter") == std::string::npos);
      CHECK(error.server_text().find("hunter") == std::string::npos);
    }
  }
}
