// Case 72: what a network does to connections by TLS.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/fault_proxy.hpp>
#include <support/tls_server.hpp>

#include <random>
#include <string>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using way = fault_proxy::way;

// Bytes go through a proxy that does not know what they mean.
struct tls_proxy_world {
  tls_proxy_world() { proxy.opaque(true); }

  std::string uri() const { return "rediss://127.0.0.1:" + std::to_string(proxy.where().port); }

  tls_server& server = shared_tls_server();
  fault_proxy proxy{server.where(), true};
};

}  // namespace

TEST_CASE("case 72: bytes of TLS that come one by one are understood", "[server][case-72][case-t54]") {
  tls_proxy_world w;
  w.proxy.slice(true);
  client own(w.uri(), with_tls(steady_config()));
  auto const lock = own.get_lock(new_name());
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  CHECK(own.snapshot().reconnects == 0);
}

TEST_CASE("case 72: a connection that is cut in its handshake is made again", "[server][case-72][case-t54]") {
  auto const which = GENERATE(way::requests, way::replies);
  tls_proxy_world w;
  std::size_t whole = 0;
  {
    client first(w.uri(), with_tls(steady_config()));
    first.connect();
    whole = w.proxy.passed(which) / 3;  // it has as many connections
  }
  REQUIRE(whole > 300);
  std::size_t const step = in_long_form() ? 1 : 7 * static_cast<std::size_t>(slowness);
  for (std::size_t k = std::random_device{}() % step; k < whole; k += step) {  // in time, after every byte
    INFO("cut after byte " << k << " of " << whole);
    int const connections = w.proxy.accepted() + 1;  // one would do
    w.proxy.cut_after(which, k);
    auto settings = with_tls(steady_config());
    settings.retry_delay = 5ms;
    client own(w.uri(), settings);
    auto const lock = own.get_lock(new_name());
    lease held = lock.acquire({.wait = patience});
    REQUIRE(held.held());
    REQUIRE(held.release() == release_result::released);
    REQUIRE(w.proxy.cut_happened());
    REQUIRE(w.proxy.accepted() > connections);
  }
}

TEST_CASE("cases 68, 72: a connection by TLS that is cut after every byte loses and doubles nothing",
          "[server][case-68][case-72][case-t54]") {
  auto const which = GENERATE(way::requests, way::replies);
  tls_proxy_world w;
  client own(w.uri(), with_tls(steady_config()));
  auto const lock = own.get_lock(new_name());
  // The scripts are known and both lanes are up.
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  auto const before = w.proxy.passed(which);
  CHECK(lock.acquire().release() == release_result::released);
  auto const whole = w.proxy.passed(which) - before;
  REQUIRE(whole > 50);
  raw_redis& admin = w.server.admin;
  for (std::size_t k = 0; k < whole; k += static_cast<std::size_t>(slowness)) {
    INFO("cut after byte " << k << " of " << whole);
    w.proxy.cut_after(which, k);
    lease held = lock.acquire({.wait = patience});
    REQUIRE(held.held());
    REQUIRE(admin.hash(lock.name()).size() == 1);
    REQUIRE(admin.hash(lock.name())[own.id() + ":" + to_string(held.owner())] == "1");
    REQUIRE(held.release() == release_result::released);
    REQUIRE(admin.integer("EXISTS", lock.name()) == 0);
    REQUIRE(w.proxy.cut_happened());
  }
  CHECK(own.snapshot().lost == 0);
  CHECK(own.snapshot().in_doubt == 0);
}
