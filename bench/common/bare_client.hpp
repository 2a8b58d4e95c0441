#pragma once

#include <support/redis_server.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace bench {

using command_words = std::vector<std::string>;

// What the library sends for `lock()` and `unlock()` of this lock, word for word.
std::vector<command_words> reentrant_pair(std::string const& name);

// What a programmer would write with hiredis alone: blocking, one connection, the scripts by their SHA-1.
class bare_client {
 public:
  // Does it sleep until the answer is there, as hiredis does, or ask the socket again and again?
  enum class waiting { sleeps, polls };

  // The pair of a reentrant lock.
  bare_client(std::uint16_t port, std::string const& name, waiting how = waiting::sleeps);
  // Another pair. The server knows its scripts; whatever it answers first is expected from then on.
  bare_client(std::uint16_t port, std::vector<command_words> pair, waiting how = waiting::sleeps);

  void pair();

  // One command of the pair, in two steps, so that others may be asked meanwhile.
  std::size_t commands() const { return requests_.size(); }
  void ask(std::size_t which);
  void hear(std::size_t which);

 private:
  struct closer {
    void operator()(redisContext* connection) const;
    void operator()(redisReply* one) const;
  };
  using reply_ptr = std::unique_ptr<redisReply, closer>;
  struct request {
    command_words words;
    std::vector<char const*> text;
    std::vector<std::size_t> size;
    bool heard = false;                    // it was answered before, or it is known what is to come:
    std::optional<std::int64_t> expected;  // the first number of the answer, if there is one
  };

  void load_scripts();
  void run(request& what);
  reply_ptr receive();
  void check(request& what, reply_ptr const& answer) const;

  std::unique_ptr<redisContext, closer> connection_;
  waiting how_;
  std::vector<request> requests_;
};

}  // namespace bench

namespace bench {

// The script calls that clients on TCP sent to each of these servers while `what` ran.
std::vector<std::vector<command_words>> record(std::vector<latchkey::test::redis_server const*> const& servers,
                                               std::function<void()> const& what);

}  // namespace bench

struct redisContext;

namespace bench {

// The server's cap: pairs of as many locks as are wanted, one lock a call, over one connection that is never empty.
// So many pairs, 50 a chunk, are on their way at a time.
class pipeline {
 public:
  pipeline(std::uint16_t port, std::string const& prefix, int locks, int under_way = 400);
  ~pipeline();

  // Pairs per second, measured for about this long.
  double pairs_per_second(double seconds);

 private:
  void send_chunk();
  void receive_chunk();

  std::unique_ptr<redisContext, void (*)(redisContext*)> connection_;
  std::vector<std::string> chunks_;  // bytes of some acquires and their releases
  int const chunks_under_way_;
  std::size_t next_ = 0;
};

}  // namespace bench
