// Three instances of a service, one of which does the nightly job. It is killed, and another takes over as soon as the
// lease of the dead one ends. Usage: nightly_job [URI]; without one a private redis-server is started.

#include "demo/private_server.hpp"

#include <latchkey/latchkey.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

constexpr auto lease_time = 1s;

// One line, in one write: the instances share the pipe.
void tell(std::string line) {
  line += '\n';
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(EXIT_FAILURE);
}

int instance(std::string const& number, std::string const& uri, std::filesystem::path const& result) {
  // [nightly_job]
  latchkey::config settings;
  settings.lock_watchdog_timeout = lease_time;  // a dead holder blocks the others no longer than this
  latchkey::client const client(uri, settings);
  auto hold = client.get_lock("nightly-job").acquire({.wait = 10s});
  if (!hold) return EXIT_FAILURE;
  if (std::filesystem::exists(result)) {  // whoever had the lock before may have done it
    tell(number + " finds it done");
    return EXIT_SUCCESS;
  }
  tell(number + " works");
  for (int step = 0; step < 10 && hold.held(); ++step) std::this_thread::sleep_for(100ms);
  if (!hold.held()) return EXIT_FAILURE;
  std::ofstream(result) << "done by " << number << "\n";
  // [/nightly_job]
  tell(number + " is done");
  return EXIT_SUCCESS;
}

pid_t start(std::string const& number, std::string const& uri, std::string const& result, int output) {
  pid_t const pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::execl("/proc/self/exe", "nightly_job", "--instance", number.c_str(), uri.c_str(), result.c_str(), nullptr);
  ::_exit(127);
}

// The next line from any instance; empty if none comes in time.
std::string next_line(int input) {
  std::string line;
  pollfd readable{input, POLLIN, 0};
  for (char c = 0; ::poll(&readable, 1, 10'000) == 1 && ::read(input, &c, 1) == 1 && c != '\n';) line += c;
  std::cout << (line.empty() ? "silence" : "instance " + line) << std::endl;
  return line;
}

// True: it went as the first lines of this file say.
bool watch(int input, std::vector<pid_t> const& pids) {
  auto const first = next_line(input);
  if (!first.ends_with(" works")) return false;
  ::kill(pids.at(std::stoul(first)), SIGKILL);
  auto const killed = steady::now();
  auto const second = next_line(input);
  auto const took = std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - killed);
  std::cout << "taken over " << took.count() << " ms after the kill" << std::endl;
  return second.ends_with(" works") && second != first && took < 2 * lease_time &&
         next_line(input).ends_with(" is done") && next_line(input).ends_with(" finds it done");
}

int run(std::vector<std::string> const& arguments) {
  if (arguments.size() == 4 && arguments[0] == "--instance") return instance(arguments[1], arguments[2], arguments[3]);
  std::optional<demo::private_server> server;
  auto const uri = arguments.empty() ? server.emplace().uri() : arguments[0];
  auto const result = std::filesystem::temp_directory_path() / ("nightly-job-" + std::to_string(::getpid()));
  int ends[2];
  if (::pipe(ends) != 0) return EXIT_FAILURE;
  std::vector<pid_t> pids;
  for (auto const* number : {"0", "1", "2"}) pids.push_back(start(number, uri, result, ends[1]));
  bool const good = watch(ends[0], pids);
  for (pid_t const pid : pids) {
    if (!good) ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return std::filesystem::remove(result) && good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (std::exception const& error) {
    std::cerr << "nightly_job: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
