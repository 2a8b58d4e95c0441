#include <support/redis_server.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace latchkey::test {

namespace {

// The program that is started: a redis-server, or what a test of the tests puts in its place.
char const* server_program() {
  char const* const other = std::getenv("LATCHKEY_TEST_SERVER");
  return other ? other : "redis-server";
}

}  // namespace

int redis_major() {
  static int const major = [] {
    // "Redis server v=7.0.15 sha=...", "Valkey server v=..."
    std::unique_ptr<FILE, int (*)(FILE*)> const answer(::popen("redis-server --version", "r"), ::pclose);
    int number = 0;
    if (!answer || std::fscanf(answer.get(), "%*s server v=%d", &number) != 1)
      throw std::runtime_error("redis-server does not tell its version (is it installed?)");
    return number;
  }();
  return major;
}

std::vector<std::string> since_redis_7(std::vector<std::string> words) {
  if (redis_major() < 7) words.clear();
  return words;
}

pid_t start_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& one : words) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  pid_t const parent = ::getpid();
  pid_t const made = ::fork();
  if (made < 0) throw std::runtime_error("fork failed");
  if (made > 0) return made;
  // Only calls that are safe after fork in a program with threads.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int const null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::dup2(null, 2);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

redis_server::redis_server(redis_options options) : options_(std::move(options)), parent_(::getpid()) {
  admin_.path = folder_.path() + "/redis.sock";
  where_ = admin_;
  if (options_.tcp) where_ = endpoint{{}, options_.port != 0 ? options_.port : free_port()};
  try {
    start();
  } catch (...) {
    kill();
    throw;
  }
}

redis_server::~redis_server() {
  if (::getpid() == parent_) kill();
}

void redis_server::start(ready when, std::vector<std::string> const& more) {
  launch(more);
  if (when == ready::wait) await_answer();
}

void redis_server::launch(std::vector<std::string> const& more) {
  std::vector<std::string> words{server_program(), "--daemonize", "no", "--bind", "127.0.0.1", "--save", ""};
  auto const set = [&](std::string name, std::string value) {
    words.push_back("--" + name);
    words.push_back(std::move(value));
  };
  set("port", std::to_string(where_.port));
  set("unixsocket", admin_.path);
  set("dir", folder_.path());
  set("logfile", folder_.path() + "/log");
  set("appendonly", options_.append_only ? "yes" : "no");
  set("appendfsync", "always");
  for (auto const& word : since_redis_7({"--enable-debug-command", "yes"})) words.push_back(word);
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  words.insert(words.end(), more.begin(), more.end());
  pid_ = start_program(std::move(words));
}

void redis_server::await_answer() {
  bool const answered = wait_until([&] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("redis-server ended at once (is it installed?)\n" + log());
    }
    if (!connect_to(where_)) return false;
    try {
      // NOAUTH is an answer too.
      return !admin().command("PING").text.starts_with("LOADING");
    } catch (std::runtime_error const&) {
      return false;
    }
  });
  if (!answered) throw std::runtime_error("redis-server does not answer\n" + log());
}

void redis_server::stop() {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
  reap();
}

void redis_server::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  reap();
}

void redis_server::reap() {
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void redis_server::pause() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void redis_server::resume() { ::kill(pid_, SIGCONT); }

std::string redis_server::log() const { return folder_.text_of("log"); }

void await_replication(redis_server const& one) {
  auto admin = one.admin();
  must_happen(wait_until([&] {
                auto const role = admin.ok("ROLE");  // "master", its offset, and each replica's address and offset
                auto const& replicas = role.elements.at(2).elements;
                return !replicas.empty() && std::all_of(replicas.begin(), replicas.end(), [&](auto const& replica) {
                  return std::stoll(replica.elements.at(2).text) >= role.elements.at(1).integer;
                });
              }),
              "the replicas have everything");
}

bool lives_longer(redis_server const& one, std::string_view key, std::chrono::milliseconds than) {
  auto admin = one.admin();
  return wait_until([&] {
    auto const left = admin.command("PTTL", key);
    return !left.is_error() && left.integer > than.count();
  });
}

void cut_replication(redis_server const& replica) {
  auto admin = replica.admin();
  admin.ok("CONFIG", "SET", "masterauth", "wrong");
  // One that has not loaded yet what its master sent has no client to end, though the master says that it is online
  // (Valkey).
  must_happen(wait_until([&] {
                admin.ok("CLIENT", "KILL", "TYPE", "master");
                auto const state = admin.ok("ROLE").elements.at(3).text;
                return state == "connect" || state == "connecting";
              }),
              "a replica is cut off");
}

command_counter::command_counter(redis_server const& server) : admin_(server.admin()), monitor_(server.admin()) {
  if (!server.where().path.empty()) throw std::logic_error("clients on Unix sockets cannot be told from the admin");
  monitor_.ok("MONITOR");
}

std::vector<std::string> command_counter::take_lines() {
  // MONITOR shows commands in the order in which they ran: what comes before the mark happened before it.
  auto const mark = "\"mark " + std::to_string(++marks_) + "\"";
  admin_.ok("ECHO", mark.substr(1, mark.size() - 2));
  std::vector<std::string> lines;
  while (true) {
    auto line = monitor_.receive().text;
    bool const by_admin = line.find(" unix:") < line.find(']');
    bool const by_script = line.find(" lua]") < line.find('"');
    if (by_admin && line.find(mark) != std::string::npos) return lines;
    if (!by_admin && !by_script) lines.push_back(std::move(line));
  }
}

std::map<std::string, int> command_counter::take() {
  std::map<std::string, int> counts;
  for (auto const& line : take_lines()) {
    auto const begin = line.find('"') + 1;
    auto name = line.substr(begin, line.find('"', begin) - begin);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    ++counts[name];
  }
  return counts;
}

}  // namespace latchkey::test
