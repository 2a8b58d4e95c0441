#include <engine/tls_session.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace latchkey::detail {

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
    return done(bio, n, [](BIO* one) { BIO_set_retry_read(one); });
  }
  static int write(BIO* bio, char const* from, int size) {
    tls_session const& me = of(bio);
    ssize_t const n = ::send(me.fd_, from, static_cast<std::size_t>(size), me.flags_ | MSG_NOSIGNAL);
    return done(bio, n, [](BIO* one) { BIO_set_retry_write(one); });
  }
  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() {
    static BIO_METHOD* const one = [] {
      BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "latchkey socket");
      if (made == nullptr) return made;
      ::BIO_meth_set_read(made, &tls_socket::read);
      ::BIO_meth_set_write(made, &tls_socket::write);
      ::BIO_meth_set_ctrl(made, &tls_socket::control);
      return made;
    }();
    return one;
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

}  // namespace latchkey::detail
