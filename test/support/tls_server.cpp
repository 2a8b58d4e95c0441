#include <support/tls_server.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace latchkey::test {

namespace {

constexpr auto new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

}  // namespace

void certificates::run(std::string const& command) const {
  std::string const line = "cd '" + folder_.path() + "' && openssl " + command + " >openssl.log 2>&1";
  if (std::system(line.c_str()) == 0) return;
  std::ifstream log(folder_.path() + "/openssl.log");
  throw std::runtime_error("openssl " + command + ": " + std::string(std::istreambuf_iterator<char>(log), {}));
}

void certificates::make_authority(std::string_view name) {
  std::string const me(name);
  run(std::string("req -x509 ") + new_key + " -keyout " + me + ".key -out " + me + ".crt -days 30 -subj /CN=" + me);
}

void certificates::make(std::string_view name, std::string_view authority, wishes const& what) {
  std::string const me(name), by(authority);
  std::ofstream(file(name, ".ext")) << "subjectAltName=" << what.names << "\nextendedKeyUsage=" << what.usage << "\n";
  run(std::string("req ") + new_key + " -keyout " + me + ".key -out " + me + ".csr -subj /CN=" + me);
  run("x509 -req -in " + me + ".csr -CA " + by + ".crt -CAkey " + by + ".key -CAcreateserial -out " + me +
      ".crt -days " + std::to_string(what.days) + " -extfile " + me + ".ext");
}

void certificates::replace(std::string_view name, std::string_view by) {
  for (auto const* suffix : {".crt", ".key"})
    std::filesystem::copy_file(file(by, suffix), file(name, suffix), std::filesystem::copy_options::overwrite_existing);
}

void certificates::protect(std::string_view name, std::string_view password) const {
  run("ec -aes128 -in " + key(name) + " -out encrypted -passout pass:" + std::string(password));
  std::filesystem::rename(folder() + "/encrypted", key(name));
}

certificates const& common_certificates() {
  static certificates const& all = []() -> certificates& {
    static certificates made;
    made.make_authority("alien");
    made.make("server");
    made.make("client", "ca", {.usage = "clientAuth"});
    made.make("elsewhere", "ca", {.names = "DNS:elsewhere.test"});
    made.make("named", "ca", {.names = "DNS:localhost"});
    made.make("expired", "ca", {.days = -1});
    made.make("stranger", "alien");
    made.make("serveronly", "ca", {.usage = "serverAuth"});
    return made;
  }();
  return all;
}

tls_server& shared_tls_server() {
  static tls_server one;
  return one;
}

std::vector<std::string> tls_arguments(std::uint16_t port, certificates const& with, std::string_view certificate,
                                       bool asks_for_one, std::vector<std::string> more) {
  std::vector<std::string> words{
      "--tls-port",         std::to_string(port),          "--tls-ca-cert-file", with.certificate("ca"),
      "--tls-cert-file",    with.certificate(certificate), "--tls-key-file",     with.key(certificate),
      "--tls-auth-clients", asks_for_one ? "yes" : "no"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace latchkey::test
