#pragma once

#include <latchkey/config.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::test {

// Authorities and certificates in a folder of their own, made by the program `openssl` when they are asked for.
class certificates {
 public:
  struct wishes {
    std::string_view names = "IP:127.0.0.1,IP:::1,DNS:localhost";
    std::string_view usage = "serverAuth,clientAuth";
    int days = 30;  // less than zero: it has expired
  };

  // With the authority `ca`.
  certificates() { make_authority("ca"); }

  void make_authority(std::string_view name);
  void make(std::string_view name, std::string_view authority, wishes const& what);
  void make(std::string_view name, std::string_view authority = "ca") { make(name, authority, wishes{}); }
  // The folder's copy of a file as another one's, as whoever renews a certificate writes it.
  void replace(std::string_view name, std::string_view by);
  // Encrypts its key.
  void protect(std::string_view name, std::string_view password) const;
  // Makes the folder one that certificates can be looked up in.
  void rehash() const { run("rehash ."); }

  std::string certificate(std::string_view name) const { return file(name, ".crt"); }
  std::string key(std::string_view name) const { return file(name, ".key"); }
  std::string folder() const { return folder_.path(); }

 private:
  std::string file(std::string_view name, std::string_view suffix) const {
    return folder_.path() + '/' + std::string(name) + std::string(suffix);
  }
  void run(std::string const& command) const;

  temp_folder folder_;
};

// A certificate for each of the cases that tests need, made once for this process.
certificates const& common_certificates();

// What makes a redis-server speak TLS at a port, with this certificate of its own.
std::vector<std::string> tls_arguments(std::uint16_t port, certificates const& with, std::string_view certificate,
                                       bool asks_for_one, std::vector<std::string> more = {});

// A redis-server that takes TLS at a port of the loopback interface. What is administered goes by its Unix socket.
struct tls_server {
  explicit tls_server(std::string_view certificate = "server", bool asks_for_one = false,
                      std::vector<std::string> more = {}, certificates const& with = common_certificates())
      : server({.arguments = tls_arguments(port, with, certificate, asks_for_one, std::move(more))}) {}

  std::string uri(std::string_view host = "127.0.0.1") const {
    return "rediss://" + std::string(host) + ':' + std::to_string(port);
  }
  endpoint where() const { return {{}, port}; }

  std::uint16_t port = free_port();
  redis_server server;
  raw_redis admin = server.admin();
};

// One for all tests of a process that leave it as it was.
tls_server& shared_tls_server();

// Trusts the tests' authority, and shows this certificate, if any.
inline config with_tls(config settings, std::string_view certificate = {},
                       certificates const& from = common_certificates()) {
  settings.tls.ca_file = from.certificate("ca");
  if (!certificate.empty()) {
    settings.tls.certificate_file = from.certificate(certificate);
    settings.tls.private_key_file = from.key(certificate);
  }
  return settings;
}

}  // namespace latchkey::test
