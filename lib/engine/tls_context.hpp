#pragma once

#include <engine/tls_session.hpp>
#include <latchkey/config.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace latchkey::detail {

// What the connections of a client by TLS begin with: certificates, keys and rules.
class tls_context {
 public:
  // \throws lock_error bad_argument: a file or a setting cannot be used; the text says which, in OpenSSL's words.
  explicit tls_context(tls_options settings);

  // Reads the files again, for connections that begin later. What was read before stays if it throws, as the
  // constructor. Any thread.
  void reload();

  // With a server that is to prove to be `host`, if the settings name no other. Null: no memory.
  std::unique_ptr<tls_session> begin(int fd, std::string const& host) const;

 private:
  using context = boost::asio::ssl::context;

  std::shared_ptr<context> read_files() const;

  tls_options const settings_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<context> context_;
};

}  // namespace latchkey::detail
