#pragma once

#include <codec/reply.hpp>
#include <support/patience.hpp>

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::test {

// A descriptor that is closed with its owner.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// A folder of its own under the system's folder for temporary files, removed with its contents by whoever made it.
class temp_folder {
 public:
  temp_folder();
  temp_folder(temp_folder const&) = delete;
  temp_folder& operator=(temp_folder const&) = delete;
  ~temp_folder();
  std::string const& path() const { return path_; }
  // What a file of it says; nothing if there is none.
  std::string text_of(std::string_view file) const;

 private:
  std::string path_;
  int const maker_;
};

// Where a server listens: a Unix socket, or a port of the loopback interface.
struct endpoint {
  std::string path;
  std::uint16_t port = 0;

  std::string uri() const;
};

// A port that nobody listened on a moment ago.
std::uint16_t free_port();

// Empty if nobody listens there.
descriptor connect_to(endpoint const& where);

// Listens there; throws if that cannot be.
descriptor listen_on(endpoint const& where);

// A plain blocking connection, to set things up on the server and to look at them.
class raw_redis {
 public:
  using reply = detail::reply;

  explicit raw_redis(endpoint const& where);

  // Sends a command and gives its answer, an error reply included.
  template <class... Words>
  reply command(Words const&... words) {
    send({word(words)...});
    return receive();
  }

  // As command(), but an error reply is thrown.
  template <class... Words>
  reply ok(Words const&... words) {
    return no_error(command(words...));
  }
  template <class... Words>
  std::int64_t integer(Words const&... words) {
    return ok(words...).integer;
  }
  template <class... Words>
  std::string text(Words const&... words) {
    return ok(words...).text;
  }

  void send(std::vector<std::string> const& words);
  // In one piece: the server runs them one right after the other.
  void send_together(std::vector<std::vector<std::string>> const& commands);
  // Throws if no answer comes in time or the connection ends.
  reply receive(std::chrono::milliseconds limit = patience);

  // The fields of a hash and their values.
  std::map<std::string, std::string> hash(std::string_view key);
  // How many connections listen to this channel.
  std::int64_t listeners_at(std::string_view channel);
  // To that of this lock.
  std::int64_t listeners(std::string_view lock);
  // Its time, since 1970.
  std::int64_t now_us();
  std::int64_t now_ms() { return now_us() / 1'000; }
  // How many script calls clients have sent.
  std::int64_t script_calls();
  // The value of `calls` in INFO commandstats; 0 if the command was never called.
  std::int64_t calls(std::string_view command);
  // How many connections there are, this one left out, whose line in CLIENT LIST contains the text.
  int clients(std::string_view containing = {});
  // Ends these connections from the server's side; returns how many.
  int kill_clients(std::string_view containing = {});

 private:
  static std::string word(std::string_view text) { return std::string(text); }
  static std::string word(std::integral auto number) { return std::to_string(number); }
  static reply no_error(reply answer);
  std::vector<std::string> client_lines(std::string_view containing);

  descriptor socket_;
  detail::reply_reader reader_;
};

// The channel on which the release of this lock is told.
std::string channel_of(std::string_view lock);

}  // namespace latchkey::test
