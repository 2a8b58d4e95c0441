#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <run/processes.hpp>

namespace latchkey::tool {
namespace {

// The entries of a folder of /proc that are numbers.
std::vector<pid_t> numbers_in(std::string const& path) {
  std::vector<pid_t> found;
  std::unique_ptr<DIR, int (*)(DIR*)> const folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return found;
  while (auto const* const entry = ::readdir(folder.get())) {
    std::string_view const name = entry->d_name;
    pid_t number = 0;
    auto const [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed == std::errc() && end == name.data() + name.size()) found.push_back(number);
  }
  return found;
}

std::string proc(pid_t process) { return "/proc/" + std::to_string(process); }

// The kernel may be built without these files.
bool lists_children() {
  static bool const there = ::access("/proc/thread-self/children", R_OK) == 0;
  return there;
}

void add_children(pid_t parent, std::vector<pid_t>& to) {
  for (auto const thread : numbers_in(proc(parent) + "/task")) {
    std::ifstream file(proc(parent) + "/task/" + std::to_string(thread) + "/children");
    std::copy(std::istream_iterator<pid_t>(file), {}, std::back_inserter(to));
  }
}

std::multimap<pid_t, pid_t> all_children() {
  std::multimap<pid_t, pid_t> all;
  for (auto const one : numbers_in("/proc")) all.emplace(parent_of(one), one);
  return all;
}

}  // namespace

// Behind the name, which may have any characters, stand the state and the parent.
pid_t parent_of(pid_t process) {
  std::ifstream file(proc(process) + "/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  auto const end = text.rfind(") ");
  if (end == text.npos || text.size() < end + 5) return -1;
  return static_cast<pid_t>(std::strtol(text.c_str() + end + 4, nullptr, 10));
}

std::vector<pid_t> descendants_of(pid_t root) {
  std::vector<pid_t> found;
  if (lists_children()) {
    add_children(root, found);
    for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
    return found;
  }
  auto const all = all_children();
  auto const add = [&](pid_t parent) {
    auto const [begin, end] = all.equal_range(parent);
    for (auto one = begin; one != end; ++one) found.push_back(one->second);
  };
  add(root);
  for (std::size_t i = 0; i < found.size(); ++i) add(found[i]);
  return found;
}

std::string name_of(pid_t process) {
  std::string name;
  std::ifstream file(proc(process) + "/comm");
  std::getline(file, name);
  return name;
}

void signal_descendants(pid_t root, int number) {
  for (auto const one : descendants_of(root)) ::kill(one, number);
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

int kill_all_descendants(pid_t watched) {
  int status = -1;
  for (timespec pause{0, 500'000};; pause.tv_nsec = std::min(2 * pause.tv_nsec, 50'000'000L)) {
    signal_descendants(::getpid(), SIGKILL);
    for (;;) {
      int how = 0;
      auto const ended = ::waitpid(-1, &how, WNOHANG);
      if (ended < 0 && errno == ECHILD) return status;
      if (ended <= 0) break;
      if (ended == watched) status = how;
    }
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace latchkey::tool
