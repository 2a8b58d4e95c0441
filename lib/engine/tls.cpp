#include <engine/tls.hpp>
#include <latchkey/error.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace latchkey::detail {

namespace asio = boost::asio;

// What OpenSSL reads from and writes to. Its own socket BIO would raise SIGPIPE, and cannot be told for one call alone
// that it is not to wait.
struct tls_socket {
  static tls_session& of(BIO* bio) { return *static_cast<tls_session*>(::BIO_get_data(bio)); }

  static int done(BIO* bio, ssize_t n, void (*again)(BIO*)) {
    BIO_clear_retry_flags(bio);
    if (n > 0) return static_cast<int>(n);
    of(bio).error_ = n == 0 ? 0 : errno;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) again(bio);
    return -1;
  }
  static int read(BIO* bio, char* to, int room) {
    tls_session const& me = of(bio);
    ssize_t const n = ::recv(me.fd_, to, static_cast<std::size_t>(room), me.flags_);
    return done(bio, n, [](BIO* socket) { BIO_set_retry_read(socket); });
  }
  static int write(BIO* bio, char const* from, int size) {
    tls_session const& me = of(bio);
    ssize_t const n = ::send(me.fd_, from, static_cast<std::size_t>(size), me.flags_ | MSG_NOSIGNAL);
    return done(bio, n, [](BIO* socket) { BIO_set_retry_write(socket); });
  }
  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() {
    static BIO_METHOD* const the_one = [] {
      BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "latchkey socket");
      if (made == nullptr) return made;
      ::BIO_meth_set_read(made, &tls_socket::read);
      ::BIO_meth_set_write(made, &tls_socket::write);
      ::BIO_meth_set_ctrl(made, &tls_socket::control);
      return made;
    }();
    return the_one;
  }
};

tls_session::tls_session(SSL* made, int fd) : ssl_(made), fd_(fd) {
  BIO* const bio = ::BIO_new(tls_socket::method());
  if (bio == nullptr) return;  // the handshake fails and says so
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl_, bio, bio);
  ::SSL_set_connect_state(ssl_);
}

tls_session::~tls_session() {
  // A lock of OpenSSL's may be held for ever in the child of a fork.
  if (!forks_.forked()) ::SSL_free(ssl_);
}

void tls_session::begin(int flags) {
  flags_ = flags;
  ::ERR_clear_error();
}

bool tls_session::shake_hands() {
  begin(MSG_DONTWAIT);
  int const result = ::SSL_do_handshake(ssl_);
  if (result == 1) return true;
  if (explain(result) == 0) {
    words_ = "the server closed the connection during the handshake";
    errno = ECONNRESET;
  }
  return false;
}

bool tls_session::ready() const { return ::SSL_is_init_finished(ssl_) != 0; }

ssize_t tls_session::read(void* to, std::size_t room, int flags) {
  begin(flags);
  std::size_t n = 0;
  int const result = ::SSL_read_ex(ssl_, to, room, &n);
  return result == 1 ? static_cast<ssize_t>(n) : explain(result);
}

ssize_t tls_session::write(void const* from, std::size_t size, int flags) {
  begin(flags);
  std::size_t n = 0;
  int const result = ::SSL_write_ex(ssl_, from, size, &n);
  if (result == 1) return static_cast<ssize_t>(n);
  if (explain(result) != 0) return -1;
  errno = EPIPE;
  return -1;
}

bool tls_session::pending() const { return ::SSL_has_pending(ssl_) != 0; }

void tls_session::say_goodbye() noexcept {
  if (failed_ || !ready()) return;
  begin(MSG_DONTWAIT);
  ::SSL_shutdown(ssl_);
}

ssize_t tls_session::explain(int result) {
  int const why = ::SSL_get_error(ssl_, result);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    wants_write_ = why == SSL_ERROR_WANT_WRITE;
    errno = EAGAIN;
    return -1;
  }
  failed_ = true;
  if (why == SSL_ERROR_ZERO_RETURN || (why == SSL_ERROR_SYSCALL && error_ == 0)) {
    words_ = "the server closed the connection";
    return 0;
  }
  if (why == SSL_ERROR_SYSCALL) {
    words_ = std::strerror(error_);
    errno = error_;
  } else {
    explain_protocol();
    errno = EPROTO;
  }
  return -1;
}

void tls_session::explain_protocol() {
  auto const code = ::ERR_peek_error();
  int const reason = ERR_GET_REASON(code);
  char const* const known = ::ERR_reason_error_string(code);
  std::string const said = known != nullptr ? known : "error " + std::to_string(code);
  bool const by_openssl = ERR_GET_LIB(code) == ERR_LIB_SSL;
  if (long const verdict = ::SSL_get_verify_result(ssl_); by_openssl && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    refused_ = true;
    words_ = "the server's certificate is refused: ";
    words_ += ::X509_verify_cert_error_string(verdict);
  } else if (by_openssl && reason >= SSL_AD_REASON_OFFSET) {
    refused_ = true;
    words_ = "the server refused: " + said;
  } else if (by_openssl && reason == SSL_R_WRONG_VERSION_NUMBER) {
    refused_ = true;
    words_ = "the server speaks no TLS on this port (" + said + ")";
  } else {
    words_ = said;
  }
}

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

void tls_context::use(std::shared_ptr<context> read) noexcept {
  std::scoped_lock const lock(mutex_);
  context_.swap(read);
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
