#include <support/leaks.hpp>
#include <support/redis_server.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace latchkey::test {

namespace {

// Fails the program at its very end, if something was left on the server.
struct verdict {
  ~verdict() {
    if (left.empty()) return;
    std::fprintf(stderr, "left on the common server at the end: %s\n", left.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
  }
  std::string left;
};

// When all tests are done, nothing of the clients may be left on it.
struct checked_server : redis_server {
  explicit checked_server(verdict& of_all) : end(of_all) {}
  ~checked_server() {
    if (::getpid() != owner) return;
    try {
      auto look = admin();
      end.left = what_is_left(look);
    } catch (std::exception const& problem) {
      end.left = problem.what();
    }
  }

  verdict& end;
  pid_t const owner = ::getpid();
};

}  // namespace

redis_server& common_server() {
  static verdict end;
  static checked_server server(end);
  return server;
}

std::string new_name() {
  static std::atomic<int> count{0};
  return "lock-" + std::to_string(++count);
}

}  // namespace latchkey::test
