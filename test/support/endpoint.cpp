#include <support/endpoint.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace latchkey::test {

namespace {

struct address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

address to_address(endpoint const& where) {
  address result;
  if (where.path.empty()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(where.port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&result.storage, &in, sizeof in);
    result.size = sizeof in;
  } else {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    where.path.copy(un.sun_path, sizeof un.sun_path - 1);
    std::memcpy(&result.storage, &un, sizeof un);
    result.size = sizeof un;
  }
  return result;
}

[[noreturn]] void fail(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

descriptor new_socket(endpoint const& where) {
  descriptor fd(::socket(where.path.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("socket");
  int const on = 1;
  if (where.path.empty()) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

descriptor::~descriptor() { close(); }

void descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

temp_folder::temp_folder()
    : path_((std::filesystem::temp_directory_path() / "latchkey-test-XXXXXX").string()), maker_(::getpid()) {
  if (::mkdtemp(path_.data()) == nullptr) fail("mkdtemp");
}

temp_folder::~temp_folder() {
  if (::getpid() != maker_) return;
  std::error_code ignored;  // a folder that stays behind is no reason to end the tests
  std::filesystem::remove_all(path_, ignored);
}

std::string endpoint::uri() const {
  return path.empty() ? "redis://127.0.0.1:" + std::to_string(port) : "unix://" + path;
}

std::uint16_t free_port() {
  endpoint any{};
  auto fd = new_socket(any);
  auto where = to_address(any);
  if (::bind(fd.get(), where.get(), where.size) != 0) fail("bind");
  sockaddr_in in{};
  socklen_t size = sizeof in;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&in), &size) != 0) fail("getsockname");
  return ntohs(in.sin_port);
}

descriptor connect_to(endpoint const& where) {
  auto fd = new_socket(where);
  auto to = to_address(where);
  if (::connect(fd.get(), to.get(), to.size) != 0) return {};
  return fd;
}

descriptor listen_on(endpoint const& where) {
  auto fd = new_socket(where);
  int const on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto at = to_address(where);
  if (::bind(fd.get(), at.get(), at.size) != 0) fail("bind");
  if (::listen(fd.get(), 128) != 0) fail("listen");
  return fd;
}

}  // namespace latchkey::test
