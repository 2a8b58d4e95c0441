#pragma once

#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace latchkey::test {

struct redis_options {
  bool tcp = false;                      // clients come by loopback TCP on a free port; else by a Unix socket
  std::uint16_t port = 0;                // that one, if they come by TCP
  bool append_only = false;              // the data outlive the server
  std::vector<std::string> arguments{};  // more words for the command line
};

// The first number of the version of `redis-server`, the one in PATH.
int redis_major();
// These words for the command line, if the server knows them: Redis 7 brought them.
std::vector<std::string> since_redis_7(std::vector<std::string> words);

// A program that ends with this process however that ends, without a terminal. Whoever starts it reaps it.
pid_t start_program(std::vector<std::string> words);

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
  // Starts it again at the same address, with its data if it is append_only. `more`: behind its usual arguments, once.
  void start(ready when = ready::wait, std::vector<std::string> const& more = {});
  void restart() {
    kill();
    start();
  }
  // While paused the server does nothing, but its sockets accept connections and bytes.
  void pause();
  void resume();

  pid_t pid() const { return pid_; }
  // What it has written of itself since it was made, restarts included.
  std::string log() const;

 private:
  void launch(std::vector<std::string> const& more);
  void await_answer();
  void reap();

  redis_options options_;
  temp_folder folder_;
  endpoint where_;
  endpoint admin_;
  pid_t const parent_;
  pid_t pid_ = -1;
};

// Waits until the replicas of this one, of which there is one at least, have all that it has. (WAIT on a connection
// that has written nothing does not wait.)
void await_replication(redis_server const& one);
// Waits until this key has longer to live than this; false if that does not come. Errors are no answer.
bool lives_longer(redis_server const& one, std::string_view key, std::chrono::milliseconds than);
// From here on this replica hears nothing of its master, but could still be promoted.
void cut_replication(redis_server const& replica);

// One server for all tests that change nothing but their own locks. Names of locks are never used twice.
redis_server& common_server();
std::string new_name();

// Counts the commands that clients send, with MONITOR. What scripts call and what admin connections send is left
// out; the latter are known by their Unix socket, so the server's clients must come by TCP.
class command_counter {
 public:
  // Counts from now on. \pre the server was made with `tcp`.
  explicit command_counter(redis_server const& server);

  // The commands since the last call, or since the beginning, by name in upper case.
  std::map<std::string, int> take();
  // The same, line by line as MONITOR shows them.
  std::vector<std::string> take_lines();

 private:
  raw_redis admin_;
  raw_redis monitor_;
  int marks_ = 0;
};

// Hears what is said on a channel, from its making on.
class channel_ear {
 public:
  channel_ear(redis_server const& server, std::string_view channel) : socket_(server.admin()) {
    socket_.ok("SUBSCRIBE", channel);
  }
  // The next payload; throws if none comes in time.
  std::string next() { return socket_.receive().elements.at(2).text; }

 private:
  raw_redis socket_;
};

// A holder of a lock that is no client of ours: it writes what Redisson's scripts write, with plain commands.
class foreign_holder {
 public:
  // Holds from now on, also when this object is gone. Throws if somebody else does.
  foreign_holder(redis_server const& server, std::string lock, std::chrono::milliseconds lease = 60s);

  // In one go: the key goes and the waiters are told.
  void release() { release_and({}); }
  // The same, and first other commands, in one transaction: nothing comes between.
  void release_and(std::vector<std::vector<std::string>> const& first);
  // The key goes and nobody is told.
  void remove();
  void rename(std::string_view to);

 private:
  raw_redis admin_;
  std::string const name_;
};

// Watches a fair lock with MONITOR: when it is free while somebody stands in its queue, by the server's own clock.
class lock_watch {
 public:
  struct findings {
    std::vector<std::chrono::microseconds> free;  // each time, ascending

    std::chrono::microseconds percentile(double part) const {
      if (free.empty()) return {};
      return free[std::min(free.size() - 1, static_cast<std::size_t>(part * static_cast<double>(free.size())))];
    }
    std::chrono::microseconds longest() const { return free.empty() ? std::chrono::microseconds{} : free.back(); }
  };

  // From now on.
  lock_watch(redis_server const& server, std::string lock);
  // Until now.
  findings stop();

 private:
  void watch();
  void see(std::string_view line);

  raw_redis admin_;
  raw_redis monitor_;
  std::string const lock_, queue_;
  bool held_ = false;
  std::deque<std::string> line_;
  std::chrono::microseconds since_{-1};
  findings found_;
  std::thread watcher_;
};

// What clients that are gone have left on a server, in words: connections, subscriptions, and keys that stay for ever
// although they stand for a hold, a waiter or a request. Empty: nothing. Waits for connections that are just ending.
std::string what_is_left(raw_redis& server);

}  // namespace latchkey::test
