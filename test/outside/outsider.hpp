// What tests from outside stand on: public headers, and a server that is looked at with redis-cli alone.
#pragma once

#include <latchkey/latchkey.hpp>
#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::outside {

using namespace std::chrono_literals;

// A private redis-server on a Unix socket (with `tcp` also on a free loopback port), stopped by the destructor.
class server {
 public:
  explicit server(bool tcp = false, std::vector<std::string> arguments = {});
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  ~server();

  std::string uri() const;
  std::string socket() const;
  // For a fault_proxy before it.
  test::endpoint const& where() const;

  // What `redis-cli WORDS...` prints, without its last line end. It connects by the Unix socket.
  std::string cli(std::vector<std::string> const& words) const;
  // A hash as redis-cli shows it.
  std::map<std::string, std::string> hash(std::string const& key) const;
  bool exists(std::string const& key) const { return cli({"EXISTS", key}) == "1"; }
  std::chrono::milliseconds pttl(std::string const& key) const {
    return std::chrono::milliseconds(std::stoll(cli({"PTTL", key})));
  }

  // SIGSTOP and SIGCONT: the sockets accept, nothing answers.
  void pause();
  void resume();
  // SIGKILL, and a new one at the same address, empty.
  void kill();
  void start();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

// One server for tests that change nothing but their own locks.
server& shared_server();
// A name that no other test uses.
std::string fresh_name();

// Two clients of it, and a name that no other test uses.
struct two_clients {
  client ours{shared_server().uri()}, second{shared_server().uri()};
  std::string const name = fresh_name();
};
struct one_lock : two_clients {
  distributed_lock const lock = ours.get_lock(name);
};

// One redis-cli that stays: a question costs a line through a pipe and no process.
class redis_cli {
 public:
  explicit redis_cli(std::string const& socket);
  redis_cli(redis_cli const&) = delete;
  redis_cli& operator=(redis_cli const&) = delete;
  ~redis_cli();

  // What it prints for this command, line by line. Words have no blanks in them.
  std::vector<std::string> ask(std::string const& command);

 private:
  std::FILE* in_ = nullptr;
  std::FILE* out_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace latchkey::outside
