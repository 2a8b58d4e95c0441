#include <common/machine_state.hpp>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace bench {

namespace {

double tick() { return 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)); }

double own_cpu() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

double cpu_seconds_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  auto const name_end = line.rfind(')');
  if (name_end == line.npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) * tick();
}

machine_watch::machine_watch(std::vector<pid_t> ours) : ours_(std::move(ours)), start_(read()) {}

machine_watch::reading machine_watch::read() const {
  reading now;
  std::ifstream file("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, softirq = 0, steal = 0;
  file >> label >> user >> nice >> system >> idle >> io >> irq >> softirq >> steal;
  // Interrupts belong to nobody, and most of them are those of our own packets.
  now.busy = (user + nice + system) * tick();
  now.stolen = steal * tick();
  now.all = (user + nice + system + idle + io + irq + softirq + steal) * tick();
  now.ours = own_cpu();
  for (pid_t const one : ours_) now.ours += cpu_seconds_of(one);
  return now;
}

machine_watch::share machine_watch::used() const {
  reading const now = read();
  double const all = now.all - start_.all;
  if (all <= 0) return {};
  double const others = now.busy - start_.busy - (now.ours - start_.ours);
  return {std::clamp(others / all, 0.0, 1.0), std::clamp((now.stolen - start_.stolen) / all, 0.0, 1.0)};
}

std::string describe_machine() {
  std::string processor = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    auto const at = line.find(": ");
    if (at != line.npos) processor = line.substr(at + 2);
    break;
  }
  utsname system{};
  ::uname(&system);
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  std::ostringstream text;
  text << std::thread::hardware_concurrency() << " cores, " << processor << ", " << system.sysname << ' '
       << system.release << ", load of the last minute " << load;
  return text.str();
}

namespace {

// Only calls that are safe after a fork of a program with threads.
[[noreturn]] void compute(pid_t parent, int core) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(static_cast<std::size_t>(core), &mine);
  ::sched_setaffinity(0, sizeof mine, &mine);
  for (volatile unsigned number = 0;;) number = number * 1664525u + 1013904223u;
}

}  // namespace

busy_cores::busy_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  pid_t const parent = ::getpid();
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(static_cast<std::size_t>(core), &usable)) continue;
    pid_t const made = ::fork();
    if (made == 0) compute(parent, core);
    if (made < 0) {
      int const why = errno;
      stop();
      throw std::system_error(why, std::generic_category(), "fork");
    }
    processes_.push_back(made);
  }
}

busy_cores::~busy_cores() { stop(); }

void busy_cores::stop() noexcept {
  for (pid_t const one : processes_) ::kill(one, SIGKILL);
  for (pid_t const one : processes_)
    while (::waitpid(one, nullptr, 0) < 0 && errno == EINTR) {
    }
  processes_.clear();
}

}  // namespace bench
