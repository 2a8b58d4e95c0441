#include <engine/tls_context.hpp>
#include <latchkey/error.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

namespace latchkey::detail {

namespace asio = boost::asio;

namespace {

void require(error_code const& failed, char const* setting, std::string const& value) {
  if (failed)
    throw lock_error(errc::bad_argument, std::string("tls.") + setting + ' ' + value + ": " + failed.message());
}

// A name also goes to the server, which may have a certificate for each of its names; an address must not.
bool expect(SSL* ssl, std::string const& host) {
  X509_VERIFY_PARAM* const rules = ::SSL_get0_param(ssl);
  ::X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  error_code no_address;
  auto const address = asio::ip::make_address(host, no_address);
  if (no_address)
    return ::X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) == 1 &&
           SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  if (address.is_v4()) {
    auto const bytes = address.to_v4().to_bytes();
    return ::X509_VERIFY_PARAM_set1_ip(rules, bytes.data(), bytes.size()) == 1;
  }
  auto const bytes = address.to_v6().to_bytes();
  return ::X509_VERIFY_PARAM_set1_ip(rules, bytes.data(), bytes.size()) == 1;
}

}  // namespace

tls_context::tls_context(tls_options settings) : settings_(std::move(settings)), context_(read_files()) {}

void tls_context::reload() {
  auto made = read_files();
  std::scoped_lock const lock(mutex_);
  context_.swap(made);
}

std::shared_ptr<tls_context::context> tls_context::read_files() const {
  auto made = std::make_shared<context>(context::tls_client);
  SSL_CTX* const raw = made->native_handle();
  error_code failed;
  // OpenSSL would ask for it on the terminal.
  made->set_password_callback(
      [this](std::size_t most, context::password_purpose) { return settings_.private_key_password.substr(0, most); },
      failed);
  if (!settings_.ca_file.empty())
    require(made->load_verify_file(settings_.ca_file, failed), "ca_file", settings_.ca_file);
  if (!settings_.ca_directory.empty())
    require(made->add_verify_path(settings_.ca_directory, failed), "ca_directory", settings_.ca_directory);
  if (settings_.ca_file.empty() && settings_.ca_directory.empty()) made->set_default_verify_paths(failed);
  if (auto const& own = settings_.certificate_file; !own.empty()) {
    auto const& key = settings_.private_key_file.empty() ? own : settings_.private_key_file;
    require(made->use_certificate_chain_file(own, failed), "certificate_file", own);
    require(made->use_private_key_file(key, context::pem, failed), "private_key_file", key);
  }
  ::SSL_CTX_set_verify(raw, settings_.verify_peer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  ::SSL_CTX_set_min_proto_version(raw, settings_.minimum == tls_version::tls1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  if (!settings_.ciphers.empty() && ::SSL_CTX_set_cipher_list(raw, settings_.ciphers.c_str()) != 1)
    throw lock_error(errc::bad_argument, "tls.ciphers " + settings_.ciphers + ": none of them is known");
  ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One system call for an answer instead of two: its head and its body.
  ::SSL_CTX_set_read_ahead(raw, 1);
  ::ERR_clear_error();
  return made;
}

std::unique_ptr<tls_session> tls_context::begin(int fd, std::string const& host) const {
  std::unique_lock lock(mutex_);
  auto const from = context_;
  lock.unlock();
  SSL* const made = ::SSL_new(from->native_handle());
  if (made == nullptr) return nullptr;
  auto session = std::make_unique<tls_session>(made, fd);
  auto const& expected = settings_.server_name.empty() ? host : settings_.server_name;
  return expect(made, expected) ? std::move(session) : nullptr;
}

}  // namespace latchkey::detail
