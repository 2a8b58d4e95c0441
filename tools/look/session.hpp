#pragma once

#include <base/exit_code.hpp>
#include <cstdint>
#include <memory>
#include <options/connection.hpp>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

namespace latchkey::tool {

class tls_channel;
struct place;

// An answer of the server, of the types that RESP2 has.
struct answer {
  enum class type { nothing, text, number, list, error } what = type::nothing;
  std::string text;  // of an error: the server's words
  std::int64_t number = 0;
  std::vector<answer> list;
};

using command = std::vector<std::string>;

// One blocking connection, for what the library does not ask. Fails with `failure`: `unavailable` where the server
// cannot be reached, says nothing for `connect_timeout` or closes the connection; `no_permission` for the user or the
// password.
class session {
 public:
  // Where this name is (topology.hpp).
  session(connection const& to, std::string const& name);
  session(connection const& to, place const& where);
  session(session const&) = delete;
  session& operator=(session const&) = delete;
  ~session();

  // An error of the server fails with the code that it stands for.
  answer ask(command const& words);
  std::int64_t ask_number(command const& words);
  // Fails with `refused`: no Redis server answers so.
  [[noreturn]] void strange() const;
  // Fails with the code that these words of the server stand for.
  [[noreturn]] void refuse(std::string const& words) const;
  bool in_cluster() const { return in_cluster_; }
  // Of a cluster from Redis 7 on; and where the server does not say.
  bool has_sharded_channels();
  // On stderr, if the server says so to us.
  void tell_of_replica();
  // `host:port`, or the socket.
  std::string const& where() const { return where_; }
  // In one round trip; errors are among the answers.
  std::vector<answer> ask_all(std::vector<command> const& all);

  void send(command const& words);
  // In a cluster on the sharded channels, too: which sort is used is up to the clients. Answers come as messages do.
  void listen(std::vector<std::string> const& channels);
  // What comes next, such as a message; false if nothing does within `limit`.
  bool receive(answer& into, milliseconds limit);

 private:
  answer next();
  // Null: nothing has come whole yet.
  void* received();
  void open(connection const& to, place const& where);
  void connect(connection const& to, place const& where);
  [[noreturn]] void lost() const;
  bool moved(std::string_view words) const;
  std::string without_password(std::string words) const;

  redisContext* socket_ = nullptr;
  std::unique_ptr<tls_channel> tls_;  // null: plain text
  milliseconds patience_{};
  std::string where_;
  std::string password_;
  bool heard_ = false;  // an answer
  bool const in_cluster_;
};

// The server may answer another time, or another one at once, without a change of settings.
struct refused_for_now : failure {
  using failure::failure;
};

// The server knows the user, who may not ask this.
struct right_missing : failure {
  using failure::failure;
};

// What `look` answers. Who may not look is told which rights it takes: `needed`, as ACL SETUSER takes them.
template <class Look>
auto with_rights(std::string const& needed, Look const& look) {
  try {
    return look();
  } catch (right_missing const& error) {
    throw right_missing(no_permission, error.what() + ("; needed: " + needed));
  }
}

// The key of those who wait for a fair lock.
std::string line_of(std::string const& name);

// The key with the ends of the leases of a semaphore's permits.
std::string leases_of(std::string const& name);

// Where permits that come free are told.
std::string channel_of_permits(std::string const& name);

// Where releases of a lock of this name are told: of any kind, and of one that `found_lock` names.
std::vector<std::string> channels_of(std::string const& name);
std::string channel_of(std::string const& name, std::string const& kind);

}  // namespace latchkey::tool
