#include <support/raw_redis.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
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

std::string temp_folder::text_of(std::string_view file) const {
  std::ifstream from(path_ + '/' + std::string(file));
  return {std::istreambuf_iterator<char>(from), {}};
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

raw_redis::raw_redis(endpoint const& where) : socket_(connect_to(where)) {
  if (!socket_) throw std::runtime_error("nobody listens at " + where.uri());
}

void raw_redis::send(std::vector<std::string> const& words) { send_together({words}); }

void raw_redis::send_together(std::vector<std::vector<std::string>> const& commands) {
  std::string bytes;
  for (auto const& words : commands) {
    bytes += "*" + std::to_string(words.size()) + "\r\n";
    for (auto const& one : words) bytes += "$" + std::to_string(one.size()) + "\r\n" + one + "\r\n";
  }
  for (std::string_view rest = bytes; !rest.empty();) {
    auto const sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("the server went away while it was written to");
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

raw_redis::reply raw_redis::receive(std::chrono::milliseconds limit) {
  auto const end = clock::now() + limit;
  reply answer;
  while (true) {
    auto const found = reader_.next(answer);
    if (found == detail::reply_reader::result::reply) return answer;
    if (found == detail::reply_reader::result::malformed) throw std::runtime_error(reader_.problem());
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now());
    pollfd ready{socket_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0)
      throw std::runtime_error("the server gave no answer in time");
    std::array<char, 65536> buffer;
    auto const got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) throw std::runtime_error("the server closed the connection");
    reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
}

raw_redis::reply raw_redis::no_error(reply answer) {
  if (answer.is_error()) throw std::runtime_error("the server said: " + answer.text);
  return answer;
}

std::map<std::string, std::string> raw_redis::hash(std::string_view key) {
  std::map<std::string, std::string> result;
  auto const all = ok("HGETALL", key).elements;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) result[all[i].text] = all[i + 1].text;
  return result;
}

std::int64_t raw_redis::listeners_at(std::string_view channel) {
  return ok("PUBSUB", "NUMSUB", channel).elements.at(1).integer;
}

std::int64_t raw_redis::listeners(std::string_view lock) { return listeners_at(channel_of(lock)); }

std::int64_t raw_redis::now_us() {
  auto const time = ok("TIME").elements;
  return std::stoll(time.at(0).text) * 1'000'000 + std::stoll(time.at(1).text);
}

std::int64_t raw_redis::script_calls() { return calls("evalsha") + calls("eval"); }

std::int64_t raw_redis::calls(std::string_view command) {
  auto const info = text("INFO", "commandstats");
  auto const prefix = "cmdstat_" + std::string(command) + ":calls=";
  auto const at = info.find(prefix);
  return at == std::string::npos ? 0 : std::stoll(info.substr(at + prefix.size()));
}

std::vector<std::string> raw_redis::client_lines(std::string_view containing) {
  auto const own = "id=" + std::to_string(integer("CLIENT", "ID")) + " ";
  std::vector<std::string> result;
  std::istringstream lines(text("CLIENT", "LIST"));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(own) && line.find(containing) != std::string::npos) result.push_back(line);
  return result;
}

int raw_redis::clients(std::string_view containing) { return static_cast<int>(client_lines(containing).size()); }

int raw_redis::kill_clients(std::string_view containing) {
  auto const lines = client_lines(containing);
  for (auto const& line : lines) command("CLIENT", "KILL", "ID", line.substr(3, line.find(' ') - 3));
  return static_cast<int>(lines.size());
}

std::string channel_of(std::string_view lock) {
  std::string const name(lock);
  return "redisson_lock__channel:" + (name.find('{') == std::string::npos ? "{" + name + "}" : name);
}

}  // namespace latchkey::test
