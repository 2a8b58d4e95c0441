#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::tool {

// Nanoseconds on the clock that also runs while the machine sleeps. Both processes have the same one.
using boot_time = std::int64_t;
boot_time boot_clock();
constexpr boot_time never = INT64_MAX;
constexpr boot_time one_ms = 1'000'000;

// One end of a pair of sockets that keep messages apart: a word, and what belongs to it behind a blank.
class message_end {
 public:
  explicit message_end(int socket) noexcept : socket_(socket) {}
  message_end(message_end&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  message_end& operator=(message_end&&) = delete;
  ~message_end();

  int socket() const noexcept { return socket_; }

  // False: the other side is gone, or has not read for so long that there is no room.
  bool send(std::string_view word, std::string_view rest = {}) const;
  bool send(std::string_view word, std::int64_t number) const { return send(word, std::to_string(number)); }

  struct message {
    std::string word;
    std::string rest;
    std::int64_t number() const;
  };
  // Does not wait. An empty word: the other side is gone. Empty: nothing there.
  std::optional<message> receive() const;

 private:
  int socket_;
};

// Throws `failure` (`no_fork`). Programs that are executed do not inherit them.
std::pair<message_end, message_end> message_pair();

}  // namespace latchkey::tool
