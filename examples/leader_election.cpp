// Two candidates, one leader. The leader is stopped in the middle of its work for longer than its lease, the other one
// takes over, and when the first one goes on it still writes: no lock can prevent that. The fencing token does: what it
// writes to refuses the lower one. Usage: leader_election; it starts a private redis-server.

#include "demo/private_server.hpp"
#include "fenced/report.hpp"

#include <latchkey/latchkey.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr auto lease_time = 500ms;

struct places {
  std::string socket;
  std::string database;
};

// One line, in one write: the candidates share the pipe.
void tell(std::string line) {
  line += '\n';
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(EXIT_FAILURE);
}

int candidate(std::string const& name, places const& where) {
  // [fenced]
  latchkey::config settings;
  settings.lock_watchdog_timeout = lease_time;
  latchkey::client const client("unix://" + where.socket, settings);
  auto const leading = client.get_fenced_lock("leader").acquire({.wait = 10s});
  if (!leading) return EXIT_FAILURE;
  auto const token = leading.fencing_token().value();
  // [/fenced]
  tell(name + " leads");
  char go = 0;
  if (::read(STDIN_FILENO, &go, 1) != 1) return EXIT_FAILURE;  // its work; it may be stopped meanwhile

  fenced::sqlite_report table(where.database);
  fenced::redis_report hash(where.socket);
  // Long ago it made sure that it still held the lock; now it writes.
  auto const verdict = [](bool written) { return written ? " written" : " refused"; };
  bool const in_table = table.write(token, "by " + name), in_hash = hash.write(token, "by " + name);
  tell(name + ": table" + verdict(in_table) + ", hash" + verdict(in_hash));
  return EXIT_SUCCESS;
}

struct process {
  pid_t pid;
  int input;

  void let_it_write() const {
    if (::write(input, "w", 1) != 1) std::cerr << "a candidate is gone\n";
  }
};

process start(std::string const& name, places const& where, int output) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_t const pid = ::fork();
  if (pid != 0) {
    ::close(ends[0]);
    return {pid, ends[1]};
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(ends[0], STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::execl("/proc/self/exe", "leader_election", "--candidate", name.c_str(), where.socket.c_str(),
          where.database.c_str(), nullptr);
  ::_exit(127);
}

// Is this the next line that a candidate says?
bool hears(int input, std::string const& expected) {
  std::string line;
  pollfd readable{input, POLLIN, 0};
  for (char c = 0; ::poll(&readable, 1, 10'000) == 1 && ::read(input, &c, 1) == 1 && c != '\n';) line += c;
  std::cout << (line.empty() ? "silence" : line) << std::endl;
  return line == expected;
}

bool watch(places const& where, std::vector<process>& all) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  all.push_back(start("ann", where, ends[1]));
  if (!hears(ends[0], "ann leads")) return false;
  all.push_back(start("ben", where, ends[1]));
  ::kill(all[0].pid, SIGSTOP);
  std::cout << "ann is stopped in the middle of her work" << std::endl;
  if (!hears(ends[0], "ben leads")) return false;
  all[1].let_it_write();
  if (!hears(ends[0], "ben: table written, hash written")) return false;
  ::kill(all[0].pid, SIGCONT);
  all[0].let_it_write();
  return hears(ends[0], "ann: table refused, hash refused") &&
         fenced::sqlite_report(where.database).read() == "by ben" &&
         fenced::redis_report(where.socket).read() == "by ben";
}

int run(std::vector<std::string> const& arguments) {
  if (arguments.size() == 4 && arguments[0] == "--candidate")
    return candidate(arguments[1], {arguments[2], arguments[3]});
  demo::private_server const server;
  auto const folder = std::filesystem::path(server.socket_path()).parent_path();  // goes with the server
  std::vector<process> all;
  bool const good = watch({server.socket_path(), folder / "reports.db"}, all);
  for (auto const& one : all) {
    if (!good) ::kill(one.pid, SIGKILL);
    ::waitpid(one.pid, nullptr, 0);
  }
  std::cout << (good ? "the late writer changed nothing\n" : "this went wrong\n");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (std::exception const& error) {
    std::cerr << "leader_election: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
