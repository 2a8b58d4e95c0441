#include <common/bare_tls_client.hpp>
#include <wire/item.hpp>

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace bench {

namespace {

using latchkey::detail::verdict;

int connected(std::uint16_t port) {
  int const made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int const yes = 1;
  ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (::connect(made, reinterpret_cast<sockaddr const*>(&to), sizeof to) == 0) return made;
  ::close(made);
  throw std::runtime_error("the bare TLS client cannot connect");
}

// The verdict that the answer to a call with one item begins with.
std::int64_t number_of(redisReply const& answer) {
  bool const good = answer.type == REDIS_REPLY_ARRAY && answer.elements == 1;
  return good && answer.element[0]->type == REDIS_REPLY_INTEGER ? answer.element[0]->integer : 0;
}

}  // namespace

void bare_tls_client::closer::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void bare_tls_client::closer::operator()(ssl_st* session) const { SSL_free(session); }
void bare_tls_client::closer::operator()(redisReader* reader) const { redisReaderFree(reader); }

bare_tls_client::bare_tls_client(std::uint16_t port, std::string const& ca_file, std::string const& name)
    : pair_(reentrant_pair(name)),
      context_(SSL_CTX_new(TLS_client_method())),
      session_(nullptr),
      reader_(redisReaderCreate()) {
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr) != 1)
    throw std::runtime_error("the bare TLS client cannot read " + ca_file);
  session_.reset(SSL_new(context_.get()));
  socket_ = connected(port);
  SSL_set_fd(session_.get(), socket_);
  if (SSL_connect(session_.get()) != 1) throw std::runtime_error("the bare TLS client and the server do not agree");
}

bare_tls_client::~bare_tls_client() { ::close(socket_); }

void bare_tls_client::run(command_words const& words, std::int64_t expected) {
  std::vector<char const*> text;
  std::vector<std::size_t> size;
  for (auto const& word : words) {
    text.push_back(word.data());
    size.push_back(word.size());
  }
  char* bytes = nullptr;
  int const length = redisFormatCommandArgv(&bytes, static_cast<int>(text.size()), text.data(), size.data());
  int const written = SSL_write(session_.get(), bytes, length);
  redisFreeCommand(bytes);
  if (written != length) throw std::runtime_error("the bare TLS client cannot write");
  void* answer = nullptr;
  while (!answer) {
    std::array<char, 16 * 1024> buffer;
    int const got = SSL_read(session_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0 || redisReaderFeed(reader_.get(), buffer.data(), static_cast<std::size_t>(got)) != REDIS_OK ||
        redisReaderGetReply(reader_.get(), &answer) != REDIS_OK)
      throw std::runtime_error("the bare TLS client cannot read");
  }
  bool const good = number_of(*static_cast<redisReply*>(answer)) == expected;
  freeReplyObject(answer);
  if (!good) throw std::runtime_error("the bare TLS client got an answer that it did not expect");
}

void bare_tls_client::pair() {
  run(pair_[0], static_cast<std::int64_t>(verdict::granted));
  run(pair_[1], static_cast<std::int64_t>(verdict::released));
}

}  // namespace bench
