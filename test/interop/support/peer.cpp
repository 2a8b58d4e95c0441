#include <interop/support/peer.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace latchkey::test {

std::string to_string(answer const& what) { return (what.ok ? "" : "failed: ") + what.value; }

std::string joined(std::vector<std::string> const& names) {
  std::string result;
  for (auto const& name : names) result.append(result.empty() ? "" : ",").append(percent_encoded(name));
  return result;
}

peer::peer(std::string library, std::vector<std::string> const& command) : library_(std::move(library)) {
  launch(command);
  listener_ = std::thread([this] { listen(); });
  try {
    await_ready();
  } catch (...) {
    kill();
    throw;
  }
}

peer::~peer() { kill(); }

void peer::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  if (listener_.joinable()) listener_.join();
}

void peer::launch(std::vector<std::string> const& command) {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  input_ = descriptor(in[1]);
  output_ = descriptor(out[0]);
  descriptor const their_input(in[0]);
  descriptor const their_output(out[1]);
  std::vector<char*> words;
  for (auto const& one : command) words.push_back(const_cast<char*>(one.c_str()));
  words.push_back(nullptr);
  pid_t const parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  // Only calls that are safe after fork in a program with threads.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(their_input.get(), 0);
  ::dup2(their_output.get(), 1);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

void peer::await_ready() {
  auto first = ready_.get_future();
  if (first.wait_for(4 * patience) != std::future_status::ready) throw std::runtime_error(library_ + " is not ready");
  ids_ = parts_of(first.get(), ' ');
  ids_.erase(ids_.begin());
}

std::future<answer> peer::send(std::vector<std::string> const& words) {
  std::lock_guard const guard(mutex_);
  auto const number = std::to_string(++last_number_);
  auto future = waiting_[number].get_future();
  std::string line = number;
  for (auto const& one : words) line += " " + one;
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    auto const written = ::write(input_.get(), rest.data(), rest.size());
    if (written <= 0) throw std::runtime_error("the driver of " + library_ + " reads no more");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return future;
}

void peer::listen() {
  std::string pending;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(output_.get(), buffer, sizeof buffer)) > 0;) {
    pending.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
      heard(pending.substr(0, end));
    }
  }
  std::lock_guard const guard(mutex_);
  auto const gone = std::make_exception_ptr(std::runtime_error("the driver of " + library_ + " has ended"));
  for (auto& [number, promise] : waiting_) promise.set_exception(gone);
  waiting_.clear();
  if (ids_.empty()) {
    try {
      ready_.set_exception(gone);
    } catch (std::future_error const&) {
      // It was ready before it ended.
    }
  }
}

void peer::heard(std::string const& line) {
  if (line.starts_with("ready ")) return ready_.set_value(line);
  auto const words = parts_of(line, ' ');
  if (words.size() < 3) return;
  answer result;
  result.ok = words[2] == "ok";
  result.at = clock::time_point(std::chrono::nanoseconds(std::stoll(words[1])));
  auto const start = words[0].size() + words[1].size() + words[2].size() + 3;
  if (line.size() > start) result.value = line.substr(start);
  std::lock_guard const guard(mutex_);
  if (auto const found = waiting_.extract(words[0])) found.mapped().set_value(std::move(result));
}

answer peer::value_in(std::future<answer>&& future, std::string const& what, std::chrono::milliseconds limit) {
  if (future.wait_for(limit) != std::future_status::ready) throw std::runtime_error("no answer in time: " + what);
  return future.get();
}

std::string peer::field(std::string const& worker) { return id() + ":" + call(worker, "owner", "lock", "any").value; }

bool redisson_is_built() { return std::filesystem::exists(LATCHKEY_INTEROP_SOURCE_DIR "/target/arguments"); }

std::string other_redisson() {
  char const* const version = std::getenv("LATCHKEY_INTEROP_REDISSON");
  return version == nullptr ? "" : version;
}

namespace {

std::unique_ptr<peer> watching_peer(std::string library, std::vector<std::string> command,
                                    std::chrono::milliseconds watchdog_timeout, std::vector<std::string> const& uris,
                                    std::chrono::milliseconds fair_lock_wait_timeout) {
  command.push_back(std::to_string(watchdog_timeout.count()));
  command.push_back(std::to_string(fair_lock_wait_timeout.count()));
  command.insert(command.end(), uris.begin(), uris.end());
  return std::make_unique<peer>(std::move(library), command);
}

}  // namespace

std::unique_ptr<peer> redisson_peer(std::chrono::milliseconds watchdog_timeout, std::vector<std::string> const& uris,
                                    std::chrono::milliseconds fair_lock_wait_timeout) {
  auto const version = other_redisson();
  auto const arguments = LATCHKEY_INTEROP_SOURCE_DIR "/target/arguments" + (version.empty() ? "" : "-" + version);
  return watching_peer(
      "Redisson",
      {"java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "@" + arguments, "latchkey.interop.Driver"},
      watchdog_timeout, uris, fair_lock_wait_timeout);
}

std::unique_ptr<peer> latchkey_peer(std::chrono::milliseconds watchdog_timeout, std::vector<std::string> const& uris,
                                    std::chrono::milliseconds fair_lock_wait_timeout) {
  return watching_peer("latchkey", {LATCHKEY_INTEROP_DRIVER}, watchdog_timeout, uris, fair_lock_wait_timeout);
}

std::unique_ptr<peer> plain_peer(std::string const& library, std::string const& uri) {
  std::string const built = LATCHKEY_INTEROP_SOURCE_DIR "/target/";
  std::string const sources = LATCHKEY_INTEROP_SOURCE_DIR "/peers/";
  std::map<std::string, std::vector<std::string>> const commands{
      {"redis-py", {built + "redis_py/bin/python3", sources + "redis_py/driver.py", uri}},
      {"redsync", {built + "redsync", uri}},
      {"redlock", {"env", "NODE_PATH=" + built + "redlock/node_modules", "node", sources + "redlock/driver.js", uri}}};
  return std::make_unique<peer>(library, commands.at(library));
}

}  // namespace latchkey::test
