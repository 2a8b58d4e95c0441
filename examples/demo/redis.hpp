#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

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

  /// Is this the server of a cluster that has this key?
  bool serves(char const* key);
  /// What INFO replication says.
  std::string replication();
  /// Does this server of a cluster know of a master for every slot?
  bool knows_every_slot();

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

  // Also an error is an answer.
  template <class... Arguments>
  reply_ptr ask(char const* format, Arguments... arguments);
  template <class... Arguments>
  reply_ptr call(char const* format, Arguments... arguments);

  std::unique_ptr<redisContext, free_context> context_;
};

}  // namespace demo

namespace demo {

inline constexpr char const* stock_key = "stock";
inline constexpr char const* lock_key = "stock:lock";

/// Sells from the stock: read it, think, write back one less. Alone it is right; two at a time lose sales.
class shop {
 public:
  shop(std::string const& socket_path, std::chrono::microseconds think) : redis_(socket_path), think_(think) {}

  long long read_stock() { return redis_.get_number(stock_key); }
  void write_stock(long long value) { redis_.set_number(stock_key, value); }
  std::chrono::microseconds think_time() const { return think_; }

  /// The whole sale. `still_allowed()` is asked before the write. False: nothing left, nothing sold.
  template <class Allowed>
  bool sell_one(Allowed still_allowed) {
    auto const stock = read_stock();
    if (stock <= 0) return false;
    std::this_thread::sleep_for(think_);
    still_allowed();
    write_stock(stock - 1);
    return true;
  }
  bool sell_one() {
    return sell_one([] {});
  }

  /// Its connection, for recipes: they lock with what they work with.
  redis& connection() { return redis_; }

 private:
  redis redis_;
  std::chrono::microseconds think_;
};

}  // namespace demo
