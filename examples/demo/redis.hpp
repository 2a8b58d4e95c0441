#pragma once

#include <chrono>
#include <memory>
#include <string>

struct redisContext;
struct redisReply;

namespace demo {

/// A plain blocking connection: what the users of a recipe have. For one thread at a time.
/// Every member throws `std::runtime_error` if the server does not do as asked.
class redis {
 public:
  explicit redis(std::string const& socket_path);
  ~redis();
  redis(redis&&) noexcept;
  redis& operator=(redis&&) noexcept;

  long long get_number(char const* key);
  void set_number(char const* key, long long value);

  /// SET key token NX PX lease. True: the key is ours.
  bool set_if_absent(char const* key, std::string const& token, std::chrono::milliseconds lease);
  /// Deletes the key if it holds `token`. True: it did.
  bool compare_and_delete(char const* key, std::string const& token);

  void flush();
  /// Sets the counters of `command_statistics` to zero.
  void reset_statistics();
  /// What INFO commandstats says.
  std::string command_statistics();

 private:
  struct free_context {
    void operator()(redisContext* context) const;
  };
  struct free_reply {
    void operator()(redisReply* reply) const;
  };
  using reply_ptr = std::unique_ptr<redisReply, free_reply>;

  template <class... Arguments>
  reply_ptr call(char const* format, Arguments... arguments);

  std::unique_ptr<redisContext, free_context> context_;
};

}  // namespace demo
