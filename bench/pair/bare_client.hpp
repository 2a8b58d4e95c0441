#pragma once

#include <codec/command_writer.hpp>
#include <wire/item.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

namespace bench {

// What a programmer would write with hiredis alone: blocking, one connection, the scripts by their SHA-1. It sends
// word for word what the library sends for `lock()` and `unlock()`.
class bare_client {
 public:
  bare_client(std::uint16_t port, std::string name);

  void pair();

 private:
  struct closer {
    void operator()(redisContext* connection) const;
  };
  // A command with all its words, made once.
  struct request {
    latchkey::detail::words words;
    std::vector<char const*> text;
    std::vector<std::size_t> size;
  };

  request prepare(latchkey::detail::item const& one);
  void run(request& what, std::int64_t expected);

  std::unique_ptr<redisContext, closer> connection_;
  std::string name_;
  std::string field_;
  request acquire_;
  request release_;
};

}  // namespace bench
