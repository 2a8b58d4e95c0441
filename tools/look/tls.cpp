#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <cerrno>
#include <cstring>
#include <look/tls.hpp>

namespace latchkey::tool {
namespace {

using context = boost::asio::ssl::context;

// The library has used the same files before, so that what is wrong with them has been said.
context context_of(tls_options const& how) {
  context made(context::tls_client);
  if (how.ca_file.empty())
    made.set_default_verify_paths();
  else
    made.load_verify_file(how.ca_file);
  if (!how.certificate_file.empty()) {
    made.use_certificate_chain_file(how.certificate_file);
    made.use_private_key_file(how.private_key_file.empty() ? how.certificate_file : how.private_key_file, context::pem);
  }
  made.set_verify_mode(boost::asio::ssl::verify_peer);
  ::SSL_CTX_set_min_proto_version(made.native_handle(), TLS1_2_VERSION);
  return made;
}

// One without may wait for the end of a line.
constexpr char const* other_port = " (a port without TLS? redis://)";

}  // namespace

void tls_channel::free_session::operator()(SSL* session) const { ::SSL_free(session); }

tls_channel::tls_channel(int fd, tls_options const& how, std::string const& host, std::string where)
    : where_(std::move(where)), session_(::SSL_new(context_of(how).native_handle())) {
  if (!session_ || ::SSL_set_fd(session_.get(), fd) != 1) throw failure(internal_error, "no memory");
  expect(host);
  ::ERR_clear_error();
  if (int const result = ::SSL_connect(session_.get()); result != 1) lost(result);
}

void tls_channel::expect(std::string const& host) {
  auto* const rules = ::SSL_get0_param(session_.get());
  ::X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  boost::system::error_code no_address;
  boost::asio::ip::make_address(host, no_address);
  bool const good = no_address ? ::SSL_set1_host(session_.get(), host.c_str()) == 1 &&
                                     SSL_set_tlsext_host_name(session_.get(), host.c_str()) == 1
                               : ::X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
  if (!good) throw failure(internal_error, "no memory");
}

void tls_channel::write(std::string_view bytes) {
  ::ERR_clear_error();
  std::size_t n = 0;
  int const result = ::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &n);
  if (result == 1) return;
  bool const in_time = ::SSL_get_error(session_.get(), result) != SSL_ERROR_WANT_WRITE;
  // What the server said before it closed the connection says more than that it did.
  char word = 0;
  lost(in_time ? ::SSL_read_ex(session_.get(), &word, 1, &n) : result);
}

std::size_t tls_channel::read(char* to, std::size_t room) {
  ::ERR_clear_error();
  std::size_t n = 0;
  if (int const result = ::SSL_read_ex(session_.get(), to, room, &n); result != 1) lost(result);
  return n;
}

bool tls_channel::pending() const { return ::SSL_has_pending(session_.get()) != 0; }

void tls_channel::lost(int result) const {
  int const system = errno;
  int const kind = ::SSL_get_error(session_.get(), result);
  auto const code = ::ERR_peek_error();
  auto const server = "cannot use the server at " + quoted(where_) + " by TLS: ";
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
    throw failure(unavailable,
                  server + "no answer in time" + (::SSL_is_init_finished(session_.get()) ? "" : other_port));
  if (kind == SSL_ERROR_SYSCALL && system != 0) throw failure(unavailable, server + std::strerror(system));
  char const* const words = ::ERR_reason_error_string(code);
  bool const refused_here = ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (refused_here)
    throw certificate_refused(no_permission,
                              server + "the server's certificate is refused: " +
                                  ::X509_verify_cert_error_string(::SSL_get_verify_result(session_.get())));
  if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER) throw failure(unavailable, server + words + other_port);
  bool const ended = ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING || words == nullptr;
  if (ended) throw failure(unavailable, server + "the server closed the connection");
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) throw failure(unavailable, server + words);
  throw certificate_refused(no_permission, server + words);
}

}  // namespace latchkey::tool
