#include <outside/outsider.hpp>
#include <support/redis_server.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace latchkey::outside {

struct server::impl {
  test::redis_server running;
};

server::server(bool tcp, std::vector<std::string> arguments)
    : impl_(new impl{test::redis_server({.tcp = tcp, .arguments = std::move(arguments)})}) {}

server::~server() = default;

std::string server::uri() const { return impl_->running.uri(); }
std::string server::socket() const { return impl_->running.admin_socket(); }
test::endpoint const& server::where() const { return impl_->running.where(); }
void server::pause() { impl_->running.pause(); }
void server::resume() { impl_->running.resume(); }
void server::kill() { impl_->running.kill(); }
void server::start() { impl_->running.start(); }

std::string server::cli(std::vector<std::string> const& words) const {
  auto const quoted = [](std::string const& word) {
    std::string text = "'";
    for (char const c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
  };
  std::string line = "redis-cli -s " + quoted(socket());
  for (auto const& word : words) line += " " + quoted(word);
  line += " 2>&1";
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  if (!pipe) throw std::runtime_error("redis-cli does not start");
  std::string said;
  std::array<char, 4096> part;
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) said.append(part.data(), n);
  ::pclose(pipe);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

std::map<std::string, std::string> server::hash(std::string const& key) const {
  std::istringstream lines(cli({"HGETALL", key}));
  std::map<std::string, std::string> fields;
  for (std::string field, value; std::getline(lines, field) && std::getline(lines, value);) fields[field] = value;
  return fields;
}

server& shared_server() {
  static server one;
  return one;
}

std::string fresh_name() { return test::new_name(); }

redis_cli::redis_cli(std::string const& socket) {
  std::array<int, 2> to{}, from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    ::execlp("redis-cli", "redis-cli", "-s", socket.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  in_ = ::fdopen(to[1], "w");
  out_ = ::fdopen(from[0], "r");
  if (pid_ < 0 || !in_ || !out_) throw std::runtime_error("redis-cli does not start");
}

redis_cli::~redis_cli() {
  std::fclose(in_);  // the end of its input ends it
  std::fclose(out_);
  ::waitpid(pid_, nullptr, 0);
}

std::vector<std::string> redis_cli::ask(std::string const& command) {
  static constexpr char mark[] = "-that-was-all-";
  std::fprintf(in_, "%s\nECHO %s\n", command.c_str(), mark);
  std::fflush(in_);
  std::vector<std::string> lines;
  std::array<char, 4096> part;
  while (std::fgets(part.data(), static_cast<int>(part.size()), out_)) {
    std::string line(part.data());
    while (!line.empty() && line.back() == '\n') line.pop_back();
    if (line == mark) return lines;
    lines.push_back(std::move(line));
  }
  throw std::runtime_error("redis-cli has ended");
}

}  // namespace latchkey::outside
