#pragma once

#include <engine/guards.hpp>
#include <latchkey/config.hpp>

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

using BIO = struct bio_st;
using SSL = struct ssl_st;

namespace boost::asio::ssl {
class context;
}

namespace latchkey::detail {

// TLS over a socket that somebody else owns. Reads and writes as `recv` and `send` do: bytes, 0 at the end, or -1 and
// errno, with EAGAIN where it cannot go on now. So a caller of its own can use it as well as the engine, which an
// `asio::ssl::stream` does not allow: what that has read already stands in a buffer of its own.
// One call at a time, from any thread.
class tls_session {
 public:
  // Takes over `made`, which no handshake has begun on.
  tls_session(SSL* made, int fd);
  ~tls_session();
  tls_session(tls_session const&) = delete;
  tls_session& operator=(tls_session const&) = delete;

  // Goes on with the handshake. True: it is over. False: see errno.
  bool shake_hands();
  bool ready() const;
  // `flags` as of `recv` and `send`; MSG_DONTWAIT, or 0 to wait as the socket does.
  ssize_t read(void* to, std::size_t room, int flags);
  // What could not be written is to be written again before anything else.
  ssize_t write(void const* from, std::size_t size, int flags);
  // After EAGAIN: until the socket can be written, not read.
  bool wants_write() const { return wants_write_; }
  // Something was received and not read yet, which makes no socket readable any more.
  bool pending() const;
  // Tells the server that nothing more comes, if that can be done at once; waits for no answer.
  void say_goodbye() noexcept;

  // After a failure: what went wrong, in OpenSSL's words.
  std::string const& words() const { return words_; }
  // One of both sides has said no, and would say so again.
  bool refused() const { return refused_; }

 private:
  friend struct tls_socket;

  void begin(int flags);
  ssize_t explain(int result);
  void explain_protocol();

  fork_guard forks_;
  SSL* const ssl_;
  int const fd_;
  int flags_ = 0;  // of the call that is under way
  int error_ = 0;  // of the socket; 0: it has ended
  bool wants_write_ = false;
  bool failed_ = false;
  bool refused_ = false;
  std::string words_;
};

// What the connections of a client by TLS begin with: certificates, keys and rules.
class tls_context {
 public:
  // \throws lock_error bad_argument: a file or a setting cannot be used; the text says which, in OpenSSL's words.
  explicit tls_context(tls_options settings);

  using context = boost::asio::ssl::context;

  // Reads the files again; throws as the constructor. Any thread.
  std::shared_ptr<context> read_files() const;
  // For connections that begin later. Any thread.
  void use(std::shared_ptr<context> read) noexcept;

  // With a server that is to prove to be `host`, if the settings name no other. Null: no memory.
  std::unique_ptr<tls_session> begin(int fd, std::string const& host) const;

 private:
  tls_options const settings_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<context> context_;
};

}  // namespace latchkey::detail
