#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace demo {

/// A `redis-server` of this process alone, on a Unix socket in a new temporary directory.
/// It stops, and the directory goes, with this object; it also stops if this process dies.
class private_server {
 public:
  /// Returns when the server answers.
  /// \throws std::runtime_error if there is no `redis-server` in the PATH, or if it does not answer in time.
  /// \param more settings of the server, as on its command line.
  explicit private_server(int max_clients = 256, std::vector<std::string> const& more = {});
  private_server(private_server const&) = delete;
  private_server& operator=(private_server const&) = delete;
  ~private_server();

  std::string const& socket_path() const { return socket_path_; }
  /// At once, as a crash would.
  void kill() noexcept;
  bool runs() const { return pid_ > 0; }

  /// For `latchkey::client`.
  std::string uri() const { return "unix://" + socket_path_; }

 private:
  void start(int max_clients, std::vector<std::string> const& more);
  void wait_until_it_answers();
  void clear() noexcept;

  std::filesystem::path directory_;
  std::string socket_path_;
  pid_t pid_ = -1;
};

/// Of the loopback interface, free when this returns.
/// \throws std::runtime_error if there is none.
int free_port();

}  // namespace demo
