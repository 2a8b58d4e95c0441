#pragma once

#include <base/instant.hpp>
#include <engine/guards.hpp>
#include <engine/private_folder.hpp>

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace latchkey::detail {

// The full path of a program, looked up in PATH unless it contains a slash; empty if there is none.
std::string find_program(std::string const& name);

// Starts a program in a session of its own, with its output in `log`. The kernel ends it with SIGTERM when the
// calling thread ends. Returns its number, or -1 with errno.
pid_t spawn_bound(std::string const& program, std::vector<std::string> const& arguments, std::string const& log);

// A private redis-server on a Unix socket in a fresh directory; both go away with this object, the
// folder of a program that was killed with the next one. The program is
// `redis-server` of PATH, or what the environment variable LATCHKEY_REDIS_SERVER names.
class embedded_server {
 public:
  // Returns when the server takes connections.
  // \throws lock_error connect_failed: it could not be started; the text says why.
  embedded_server();
  ~embedded_server();
  embedded_server(embedded_server const&) = delete;
  embedded_server& operator=(embedded_server const&) = delete;

  std::string const& socket_path() const { return socket_path_; }

 private:
  enum class phase { starting, running, failed, ended };

  void keep(std::string program);
  void wait_until_it_listens();
  void stop() noexcept;
  bool wait_for_end(std::unique_lock<std::mutex>& lock, milliseconds length);
  std::string last_words() const;

  fork_guard forks_;
  std::optional<private_folder> folder_;
  std::string socket_path_;
  std::string log_path_;

  std::mutex mutex_;
  std::condition_variable changed_;
  phase phase_ = phase::starting;
  int failure_ = 0;  // errno of a failed start
  pid_t child_ = -1;
  // The kernel tells the child when the *thread* that made it ends, so a thread keeps it.
  std::thread keeper_;
};

}  // namespace latchkey::detail
