// A cluster whose nodes take TLS alone, also from each other; sentinels with certificates of their own.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/sentinel_set.hpp>
#include <support/tls_server.hpp>
#include <wire/cluster.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int middle = detail::slot_count / 2;

struct tls_node {
  explicit tls_node(std::string_view certificate)
      : of(certificate, false,
           {"--cluster-enabled", "yes", "--cluster-port", std::to_string(bus), "--tls-cluster", "yes"}) {}

  std::uint16_t const bus = free_port();
  tls_server of;
};

struct tls_cluster {
  explicit tls_cluster(std::string_view certificate = "server") : low(certificate), high(certificate) {
    low.of.admin.ok("CLUSTER", "SET-CONFIG-EPOCH", 1);
    low.of.admin.ok("CLUSTER", "ADDSLOTSRANGE", 0, middle - 1);
    high.of.admin.ok("CLUSTER", "SET-CONFIG-EPOCH", 2);
    high.of.admin.ok("CLUSTER", "ADDSLOTSRANGE", middle, detail::slot_count - 1);
    low.of.admin.ok("CLUSTER", "MEET", "127.0.0.1", high.of.port, high.bus);
    for (auto* one : {&low, &high})
      REQUIRE(wait_until([&] {
        auto const text = one->of.admin.text("CLUSTER", "INFO");
        return text.find("cluster_state:ok") != text.npos && text.find("cluster_slots_ok:16384") != text.npos;
      }));
  }
  std::string uri() const { return "rediss-cluster://127.0.0.1:" + std::to_string(low.of.port); }

  tls_node low, high;
};

std::string name_in(bool lower) {
  for (;;) {
    std::string made = new_name();
    if ((detail::slot_of(made) < middle) == lower) return made;
  }
}

// What a sentinel with this certificate is told.
std::vector<std::string> tls_lines(std::uint16_t port, std::string const& certificate) {
  auto const& files = common_certificates();
  return {"tls-port " + std::to_string(port),
          "tls-ca-cert-file " + files.certificate("ca"),
          "tls-cert-file " + files.certificate(certificate),
          "tls-key-file " + files.key(certificate),
          "tls-auth-clients no",
          "tls-replication yes"};
}

}  // namespace

TEST_CASE("cluster: by TLS to all nodes", "[topologies][cluster]") {
  tls_cluster servers;
  client own(servers.uri(), with_tls(steady_config()));
  client other(servers.uri(), with_tls(steady_config()));
  for (bool const lower : {true, false}) {
    auto const lock = own.get_lock(name_in(lower));
    auto held = lock.acquire({.wait = patience});
    REQUIRE(held.held());
    CHECK((lower ? servers.low : servers.high).of.admin.integer("EXISTS", lock.name()) == 1);
    CHECK_FALSE(other.get_lock(lock.name()).acquire({.wait = 0ms}).held());
    CHECK(held.release() == release_result::released);
  }
  auto const error =
      thrown_by([&] { return client(servers.uri(), steady_config()).get_lock("k").acquire({.wait = 2s}); });
  CHECK(error.code() == errc::tls_failed);
}

TEST_CASE("cluster: a certificate is verified for the name that its node announces", "[topologies][cluster]") {
  tls_cluster servers("named");
  std::string const uri = "rediss-cluster://localhost:" + std::to_string(servers.low.of.port);
  auto const name = name_in(false);
  // By its address nobody may believe it.
  auto const error =
      thrown_by([&] { return client(uri, with_tls(steady_config())).get_lock(name).acquire({.wait = 2s}); });
  CHECK(error.code() == errc::tls_failed);
  for (auto* one : {&servers.low, &servers.high})
    one->of.admin.ok("CONFIG", "SET", "cluster-announce-hostname", "localhost");
  auto const announced = [&](tls_node& by) {
    auto const text = by.of.admin.text("CLUSTER", "NODES");
    return text.find(",localhost") != text.rfind(",localhost");
  };
  REQUIRE(wait_until([&] { return announced(servers.low) && announced(servers.high); }));
  client own(uri, with_tls(steady_config()));
  auto held = own.get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  CHECK(servers.high.of.admin.integer("EXISTS", name) == 1);
  CHECK(held.release() == release_result::released);
}

TEST_CASE("sentinel: certificates of sentinels may be of another authority", "[topologies][case-t51]") {
  auto const& files = common_certificates();
  tls_server master;
  std::uint16_t const port = free_port();
  sentinel_process const sentinel(master.port, 1, tls_lines(port, "stranger"));
  std::string const uri = "rediss-sentinel://127.0.0.1:" + std::to_string(port) + "/m";
  event_log log;
  config settings = with_tls(steady_config(log));
  settings.check_lock_synced_replicas = false;
  auto const error = thrown_by([&] { return client(uri, settings).get_lock("k").acquire({.wait = 2s}); });
  CHECK(error.code() == errc::tls_failed);

  settings.sentinel_tls.ca_file = files.certificate("alien");
  client own(uri, settings);
  auto held = own.get_lock(new_name()).acquire({.wait = patience});
  REQUIRE(held.held());
  CHECK(master.admin.integer("EXISTS", held.name()) == 1);
  auto const lonely = "127.0.0.1:" + std::to_string(port) + " knows no other";
  CHECK(wait_until([&] { return log.words().find(lonely) != std::string::npos; }));
  own.reload_tls();
  CHECK(log.wait_for(event_type::tls_reloaded));
  CHECK(held.release() == release_result::released);
}

TEST_CASE("sentinel: where a file of the sentinels' is bad none of the servers' is taken either",
          "[topologies][case-t53]") {
  auto const& files = common_certificates();
  certificates mine;
  auto const put = [&](char const* name, char const* from) {
    std::filesystem::copy_file(files.certificate(from), mine.certificate(name),
                               std::filesystem::copy_options::overwrite_existing);
  };
  put("servers", "ca");
  put("sentinels", "ca");
  tls_server master;
  std::uint16_t const port = free_port();
  sentinel_process const sentinel(master.port, 1, tls_lines(port, "server"));
  config settings = with_tls(steady_config());
  settings.check_lock_synced_replicas = false;
  settings.tls.ca_file = mine.certificate("servers");
  settings.sentinel_tls.ca_file = mine.certificate("sentinels");
  client own("rediss-sentinel://127.0.0.1:" + std::to_string(port) + "/m", settings);
  auto const lock = own.get_lock(new_name());
  REQUIRE(lock.acquire({.wait = patience}).held());

  put("servers", "alien");
  std::ofstream(mine.certificate("sentinels")) << "nothing\n";
  CHECK(error_of([&] { own.reload_tls(); }) == errc::bad_argument);
  auto const before = own.snapshot().reconnects;
  master.admin.kill_clients("laddr=127.0.0.1:" + std::to_string(master.port));
  CHECK(lock.acquire({.wait = patience}).held());
  CHECK(own.snapshot().reconnects > before);
}
