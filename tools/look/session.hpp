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

// One blocking connection, for what the library does not ask; behind sentinels to the master that the first of them
// names that answers; in a cluster to the master that has this name. Fails with `failure`: `unavailable` where the
// server cannot be reached, says nothing for 5 s or closes the connection; `no_permission` for the user or the
// password.
class session {
 public:
  explicit session(connection const& to, std::string const& name = {});
  session(session const&) = delete;
  session& operator=(session const&) = delete;
  ~session();

  // An error of the server fails with the code that it stands for.
  answer ask(command const& words);
  std::int64_t ask_number(command const& words);
  // Fails with `refused`: no Redis server answers so.
  [[noreturn]] void strange() const;
  bool in_cluster() const { return in_cluster_; }
  // In one round trip; errors are among the answers.
  std::vector<answer> ask_all(std::vector<command> const& all);

  void send(command const& words);
  // What comes next, such as a message; false if nothing does within `limit`.
  bool receive(answer& into, milliseconds limit);

 private:
  answer next();
  // Null: nothing has come whole yet.
  void* received();
  session(connection const& to, place const& where);
  void open(connection const& to, place const& where);
  void connect(connection const& to, place const& where);
  static void ask_sentinels(connection const& to, place& where);
  static void ask_nodes(connection const& to, place& where, std::string const& name);
  [[noreturn]] void lost() const;

  redisContext* socket_ = nullptr;
  std::unique_ptr<tls_channel> tls_;  // null: plain text
  std::string where_;
  bool in_cluster_ = false;
};

// Fails with the code that these words of the server stand for.
[[noreturn]] void refuse(std::string const& words);

// What `look` answers. Who may not look is told which rights it takes: `needed`, as ACL SETUSER takes them.
template <class Look>
auto with_rights(std::string const& needed, Look const& look) {
  try {
    return look();
  } catch (failure const& error) {
    if (error.code() != no_permission) throw;
    throw failure(no_permission, error.what() + ("; needed: " + needed));
  }
}

// The key of those who wait for a fair lock.
std::string line_of(std::string const& name);

// The key with the ends of the leases of a semaphore's permits.
std::string leases_of(std::string const& name);

// Where permits that come free are told.
std::string channel_of_permits(std::string const& name);

// Where releases of a lock of this name are told.
std::vector<std::string> channels_of(std::string const& name);

}  // namespace latchkey::tool
