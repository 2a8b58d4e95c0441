#pragma once

#include <support/endpoint.hpp>
#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey::test {

struct redis_options {
  bool tcp = false;                      // clients come by loopback TCP on a free port; else by a Unix socket
  bool append_only = false;              // the data outlive the server
  std::vector<std::string> arguments{};  // more words for the command line
};

// The first number of the version of `redis-server`, the one in PATH.
int redis_major();
// These words for the command line, if the server knows them: Redis 7 brought them.
std::vector<std::string> since_redis_7(std::vector<std::string> words);

// A redis-server of our own. It ends with this object (not with a copy of it in a forked process), and with this
// process however that ends.
class redis_server {
 public:
  enum class ready { wait, do_not_wait };

  // Comes back when the server answers.
  explicit redis_server(redis_options options = {});
  redis_server(redis_server const&) = delete;
  redis_server& operator=(redis_server const&) = delete;
  ~redis_server();

  // Where clients come in.
  endpoint const& where() const { return where_; }
  std::string uri() const { return where_.uri(); }
  // For redis-cli -s.
  std::string const& admin_socket() const { return admin_.path; }
  // A new connection for setting up and looking. Always by the Unix socket, so that it differs from TCP clients.
  raw_redis admin() const { return raw_redis(admin_); }

  // Asks it to end and waits.
  void stop();
  // SIGKILL.
  void kill();
  // Starts it again at the same address, with its data if it is append_only.
  void start(ready when = ready::wait);
  void restart() {
    kill();
    start();
  }
  // While paused the server does nothing, but its sockets accept connections and bytes.
  void pause();
  void resume();

  pid_t pid() const { return pid_; }

 private:
  void launch();
  void await_answer();
  void reap();
  std::string log() const;

  redis_options options_;
  temp_folder folder_;
  endpoint where_;
  endpoint admin_;
  pid_t const parent_;
  pid_t pid_ = -1;
};

// One server for all tests that change nothing but their own locks. Names of locks are never used twice.
redis_server& common_server();
std::string new_name();

}  // namespace latchkey::test
