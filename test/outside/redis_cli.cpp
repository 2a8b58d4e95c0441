#include <outside/redis_cli.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace latchkey::outside {

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
