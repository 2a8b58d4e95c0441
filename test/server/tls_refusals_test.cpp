// Case 72: what is refused by TLS, with which words, and how soon.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/tls_server.hpp>

#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr auto at_once = 1s * slowness;

// A call that may wait for long ends at once, with these words.
void check_refused(std::string const& uri, config settings, std::string const& words) {
  event_log log;
  client own(uri, heard_by(log, std::move(settings)));
  stopwatch since;
  auto const error = thrown_by([&] { return own.get_lock("lock").try_lock(patience); });
  CHECK(since.passed() < at_once);
  CHECK(error.code() == errc::tls_failed);
  INFO(error.what());
  CHECK(error.server_text().find(words) != std::string::npos);
  CHECK(error.server_text().find("127.0.0.1:") != std::string::npos);
  CHECK(log.last(event_type::connect_failed).text.find(words) != std::string::npos);
}

bool works(std::string const& uri, config const& settings) {
  client own(uri, settings);
  return own.get_lock(new_name()).acquire({.wait = patience}).held();
}

// What a client says first, to a listener that says nothing.
std::string first_words(std::string const& host) {
  auto const port = free_port();
  auto const listener = listen_on({{}, port});
  auto settings = with_tls(steady_config());
  settings.retry_attempts = 0;
  client own("rediss://" + host + ':' + std::to_string(port), settings);
  std::thread caller([&] { static_cast<void>(error_of([&] { return own.get_lock("lock").try_lock(); })); });
  descriptor accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::string bytes(4096, '\0');
  auto const n = ::recv(accepted.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  accepted.close();  // which ends the call: it has one attempt
  caller.join();
  return bytes;
}

// A single try ends in time, with these words.
std::chrono::milliseconds try_in_vain(std::string const& uri, config const& settings, std::string const& words) {
  client own(uri, settings);
  stopwatch since;
  auto const error = thrown_by([&] { return own.get_lock("lock").try_lock(); });
  auto const passed = since.passed();
  CHECK(passed < 2s * slowness);
  CHECK(error.code() == errc::connect_failed);
  INFO(error.what());
  CHECK(error.server_text().find(words) != std::string::npos);
  return passed;
}

}  // namespace

TEST_CASE("case 72: a server's certificate that does not hold is refused, and why is said",
          "[server][case-72][case-t51]") {
  auto const [certificate, words] = GENERATE(table<std::string, std::string>({
      {"stranger", "unable to get local issuer certificate"},
      {"elsewhere", "IP address mismatch"},
      {"expired", "certificate has expired"},
  }));
  INFO(certificate);
  tls_server server(certificate);
  check_refused(server.uri(), with_tls(steady_config()), words);
  auto trusting = with_tls(steady_config());
  trusting.tls.verify_peer = false;
  CHECK(works(server.uri(), trusting));
}

TEST_CASE("case 72: the name that is expected is the host's, or the one that the settings name",
          "[server][case-72][case-t51]") {
  tls_server server("elsewhere");
  auto settings = with_tls(steady_config());
  settings.tls.server_name = "elsewhere.test";
  CHECK(works(server.uri(), settings));
  settings.tls.server_name = "other.test";
  check_refused(server.uri(), settings, "hostname mismatch");
}

TEST_CASE("case 72: a server that asks for a certificate refuses none, an alien one and a server's",
          "[server][case-72][case-t51]") {
  tls_server server("server", true);
  auto const [certificate, words] = GENERATE(table<std::string, std::string>({
      {"", "certificate required"},
      {"stranger", "unknown ca"},
      {"serveronly", "unsupported certificate"},
  }));
  INFO(certificate);
  check_refused(server.uri(), with_tls(steady_config(), certificate), words);
  CHECK(works(server.uri(), with_tls(steady_config(), "client")));
}

TEST_CASE("case 72: TLS 1.2 is taken unless the settings want 1.3", "[server][case-72][case-t51]") {
  tls_server server("server", false, {"--tls-protocols", "TLSv1.2"});
  auto settings = with_tls(steady_config());
  settings.tls.ciphers = "ECDHE+AESGCM";
  CHECK(works(server.uri(), settings));
  settings.tls.minimum = tls_version::tls1_3;
  check_refused(server.uri(), settings, "protocol version");
}

TEST_CASE("case 72: a server that speaks TLS 1.1 alone is refused", "[server][case-72][case-t51]") {
  tls_server server("server", false, {"--tls-protocols", "TLSv1.1", "--tls-ciphers", "DEFAULT@SECLEVEL=0"});
  check_refused(server.uri(), with_tls(steady_config()), "protocol version");
}

TEST_CASE("case 72: TLS to a port of plain text ends in time, and says so", "[server][case-72][case-t52]") {
  redis_server plain({.tcp = true});
  auto settings = with_tls(steady_config());
  settings.connect_timeout = 300ms;
  settings.retry_attempts = 0;
  try_in_vain("rediss://127.0.0.1:" + std::to_string(plain.where().port), settings, "TLS");
}

TEST_CASE("case 72: plain text to a port of TLS ends in time, and says so", "[server][case-72][case-t52]") {
  tls_server server;
  auto settings = steady_config();
  settings.retry_attempts = 1;
  try_in_vain("redis://127.0.0.1:" + std::to_string(server.port), settings, "TLS");
}

TEST_CASE("case 72: a server that never answers the handshake costs the connect timeout", "[server][case-72]") {
  auto const port = free_port();
  auto const listener = listen_on({{}, port});
  auto settings = with_tls(steady_config());
  settings.connect_timeout = 300ms;
  settings.retry_attempts = 0;
  CHECK(try_in_vain("rediss://127.0.0.1:" + std::to_string(port), settings, "no answer to the handshake") >= 200ms);
}

TEST_CASE("case 72: a server is told the name that is meant, but no address", "[server][case-72]") {
  CHECK(first_words("localhost").find("localhost") != std::string::npos);
  auto const said = first_words("127.0.0.1");
  REQUIRE(said.size() > 100);
  CHECK(said.find("127.0.0.1") == std::string::npos);
}

TEST_CASE("case 72: authorities may stand in a folder", "[server][case-72]") {
  certificates own;
  own.make("server");
  tls_server server("server", false, {}, own);
  auto settings = steady_config();
  settings.tls.ca_directory = own.folder();
  check_refused(server.uri(), settings, "self-signed certificate");
  own.rehash();
  CHECK(works(server.uri(), settings));
}

TEST_CASE("case 72: a file that cannot be used is named when the client is made", "[server][case-72]") {
  auto const& all = common_certificates();
  auto const refused = [](config const& settings) {
    auto const error = thrown_by([&] { return client("rediss://localhost", settings); });
    CHECK(error.code() == errc::bad_argument);
    return error.server_text();
  };
  auto settings = with_tls(steady_config());
  settings.tls.ca_file = all.folder() + "/absent";
  CHECK(refused(settings).find("tls.ca_file " + settings.tls.ca_file) != std::string::npos);
  settings = with_tls(steady_config(), "client");
  settings.tls.private_key_file = all.key("server");
  CHECK(refused(settings).find("key values mismatch") != std::string::npos);
  settings.tls.private_key_file.clear();  // and the certificate's file has none
  CHECK(refused(settings).find("tls.private_key_file") != std::string::npos);
  settings.tls.certificate_file.clear();
  settings.tls.private_key_file = all.key("client");
  CHECK(refused(settings).find("needs a tls.certificate_file") != std::string::npos);
  settings = with_tls(steady_config());
  settings.tls.ciphers = "no-such-cipher";
  CHECK(refused(settings).find("no-such-cipher") != std::string::npos);
}

TEST_CASE("case 72: a key may be encrypted, and a wrong password is told without showing it", "[server][case-72]") {
  certificates files;
  files.make("server");
  files.make("client");
  files.protect("client", "sesame");
  tls_server server("server", true, {}, files);
  auto settings = with_tls(steady_config(), "client", files);
  settings.tls.private_key_password = "sesame";
  CHECK(works(server.uri(), settings));
  for (auto const* wrong : {"", "s3cret"}) {
    settings.tls.private_key_password = wrong;
    auto const error = thrown_by([&] { return client(server.uri(), settings); });
    CHECK(error.code() == errc::bad_argument);
    CHECK(error.server_text().find("tls.private_key_file " + files.key("client")) != std::string::npos);
    CHECK(error.server_text().find("s3cret") == std::string::npos);
  }
}

TEST_CASE("case 72: certificates are read again for new connections, and a bad file changes nothing",
          "[server][case-72][case-t53]") {
  certificates files;
  files.make("server");
  files.make_authority("alien");
  files.make("mine", "alien");
  files.make("good");
  tls_server server("server", true, {}, files);
  event_log log;
  auto settings = with_tls(steady_config(log), "mine", files);
  settings.retry_delay = 4 * patience;
  client own(server.uri(), settings);
  auto const lock = own.get_lock("lock");
  // The second of them is followed by a pause.
  for (int i = 0; i < 2; ++i) CHECK(error_of([&] { return lock.try_lock(patience); }) == errc::tls_failed);
  files.replace("mine", "good");
  own.reload_tls();
  CHECK(log.wait_for(event_type::tls_reloaded));
  CHECK(lock.acquire({.wait = patience}).held());

  std::ofstream(files.certificate("mine")) << "nothing\n";
  auto const error = thrown_by([&] { own.reload_tls(); });
  CHECK(error.code() == errc::bad_argument);
  CHECK(error.server_text().find("tls.certificate_file") != std::string::npos);
  server.admin.kill_clients("laddr=127.0.0.1:" + std::to_string(server.port));
  CHECK(lock.acquire({.wait = patience}).held());
  CHECK(own.snapshot().reconnects >= 1);
}

TEST_CASE("case 72: certificates are read again while callers work, and none fails", "[server][case-72][case-t53]") {
  tls_server server;
  client own(server.uri(), with_tls(steady_config()));
  std::atomic<bool> over = false;
  std::atomic<int> failed = 0, done = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&, i] {
      auto const lock = own.get_lock("lock" + std::to_string(i % 2));
      while (!over) {
        auto held = lock.acquire({.wait = patience});
        failed += !held || held.release() != release_result::released;
        ++done;
      }
    });
  for (int i = 0; i < 20; ++i) {
    own.reload_tls();
    auto const before = done.load();
    CHECK(wait_until([&] { return done >= before + 10; }));
    if (i % 5 == 4) server.admin.kill_clients("laddr=127.0.0.1:" + std::to_string(server.port));
  }
  over = true;
  for (auto& one : callers) one.join();
  CHECK(failed == 0);
  CHECK(own.snapshot().lost == 0);
}
