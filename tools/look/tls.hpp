#pragma once

#include <latchkey/config.hpp>

#include <base/exit_code.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

using SSL = struct ssl_st;

namespace latchkey::tool {

// One of both sides refuses the other, with `no_permission`.
struct certificate_refused : failure {
  using failure::failure;
};

// TLS over a connected, blocking socket that somebody else owns, and that has time limits. Fails with
// `certificate_refused`, or with `failure`, `unavailable`.
class tls_channel {
 public:
  // `where` stands in messages. Returns when both sides agree.
  tls_channel(int fd, tls_options const& how, std::string const& host, std::string where);

  void write(std::string_view bytes);
  // At least one byte.
  std::size_t read(char* to, std::size_t room);
  // Something was received that makes the socket readable no more.
  bool pending() const;

 private:
  struct free_session {
    void operator()(SSL* session) const;
  };

  void expect(std::string const& host);
  [[noreturn]] void lost(int result) const;

  std::string where_;
  std::unique_ptr<SSL, free_session> session_;
};

}  // namespace latchkey::tool
