#pragma once

#include <common/bare_client.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisReader;
struct ssl_ctx_st;
struct ssl_st;

namespace bench {

// bare_client by TLS, as a programmer would write it with OpenSSL and hiredis' parser: blocking, one connection, the
// server's certificate checked.
class bare_tls_client {
 public:
  bare_tls_client(std::uint16_t port, std::string const& ca_file, std::string const& name);
  ~bare_tls_client();

  void pair();

 private:
  struct closer {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* session) const;
    void operator()(redisReader* reader) const;
  };

  void run(command_words const& words, std::int64_t expected);

  std::vector<command_words> pair_;
  int socket_ = -1;
  std::unique_ptr<ssl_ctx_st, closer> context_;
  std::unique_ptr<ssl_st, closer> session_;
  std::unique_ptr<redisReader, closer> reader_;
};

}  // namespace bench
