#pragma once

#include <cstdint>
#include <string>
#include <utility>

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

}  // namespace latchkey::test
