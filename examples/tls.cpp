// A lock by TLS with certificates on both sides, one of which is renewed while the program runs.
// Usage: tls [rediss://HOST[:PORT][/DB] CA_FILE CERTIFICATE_FILE KEY_FILE]; without arguments the program `openssl`
// makes the files, for a private redis-server.

#include "demo/private_server.hpp"

#include <latchkey/latchkey.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct files {
  std::string ca, certificate, key;
};

// What a company's own authority does, in a folder that goes with this object.
class authority {
 public:
  authority() {
    if (!mkdtemp(folder_.data())) throw std::runtime_error("cannot make " + folder_);
    openssl("req -x509 " + new_key("ca") + " -out ca.crt -days 30 -subj /CN=authority");
  }
  ~authority() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  authority(authority const&) = delete;
  authority& operator=(authority const&) = delete;

  files sign(std::string const& name) const {
    openssl("req " + new_key(name) + " -out " + name + ".csr -subj /CN=" + name +
            " -addext subjectAltName=IP:127.0.0.1");
    openssl("x509 -req -in " + name +
            ".csr -CA ca.crt -CAkey ca.key -CAcreateserial -copy_extensions copy -days 7 -out " + name + ".crt");
    return {folder_ + "/ca.crt", folder_ + '/' + name + ".crt", folder_ + '/' + name + ".key"};
  }

 private:
  static std::string new_key(std::string const& name) {
    return "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + name + ".key";
  }
  void openssl(std::string const& words) const {
    auto const command = "cd '" + folder_ + "' && openssl " + words + " 2>openssl.log";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl " + words + " failed");
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "latchkey-tls-XXXXXX").string();
};

std::vector<std::string> server_settings(int port, files const& own) {
  return {"--bind",
          "127.0.0.1",
          "--tls-port",
          std::to_string(port),
          "--tls-cert-file",
          own.certificate,
          "--tls-key-file",
          own.key,
          "--tls-ca-cert-file",
          own.ca,
          "--tls-auth-clients",
          "yes"};
}

bool use(std::string const& uri, files const& own) {
  // [tls]
  latchkey::config settings;
  settings.tls.ca_file = own.ca;                    // without it: the authorities of the system
  settings.tls.certificate_file = own.certificate;  // without it: none is shown
  settings.tls.private_key_file = own.key;
  latchkey::client const client(uri, settings);
  auto const lock = client.get_lock("invoice:42");
  // [/tls]
  auto const worked = [&] { return lock.acquire({.wait = 5s}).release() == latchkey::release_result::released; };
  bool const before = worked();
  // [reload]
  try {
    client.reload_tls();  // after somebody has renewed the files
  } catch (latchkey::lock_error const& error) {
    std::cerr << error.what() << "\n";  // which file, and why; what was read before stays in use
  }
  // [/reload]
  return before && worked();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 5) return use(argv[1], {argv[2], argv[3], argv[4]}) ? EXIT_SUCCESS : EXIT_FAILURE;
    authority const signs;
    int const port = demo::free_port();
    demo::private_server const server(256, server_settings(port, signs.sign("server")));
    auto const uri = "rediss://127.0.0.1:" + std::to_string(port);
    bool const good = use(uri, signs.sign("client"));
    std::cout << (good ? "locked by TLS, before and after the files were read again\n" : "it did not work\n");

    latchkey::client const stranger(uri);  // trusts the system's authorities, and they do not know this one
    try {
      stranger.connect(5s);
    } catch (latchkey::lock_error const& error) {
      std::cout << "a client that does not know the authority: " << error.what() << "\n";
      return good && error.code() == latchkey::errc::tls_failed ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return EXIT_FAILURE;
  } catch (std::exception const& error) {
    std::cerr << "tls: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
