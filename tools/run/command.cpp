#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <run/command.hpp>

namespace latchkey::tool {
namespace {

enum class found { nothing, not_for_us, program };

found look_at(std::string const& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return errno == EACCES ? found::not_for_us : found::nothing;
  return S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0 ? found::program : found::not_for_us;
}

std::vector<std::string> places(std::string const& name) {
  if (name.find('/') != name.npos) return {name};
  std::vector<std::string> all;
  char const* const given = std::getenv("PATH");
  std::string_view path = given ? given : "/bin:/usr/bin";
  for (;;) {
    auto const colon = path.find(':');
    auto folder = std::string(path.substr(0, colon));
    all.push_back(folder.empty() ? "./" + name : folder + "/" + name);  // an empty place is the working directory
    if (colon == path.npos) return all;
    path.remove_prefix(colon + 1);
  }
}

// As execvp: what the kernel cannot run is a script of the shell.
void execute(std::string const& path, std::vector<std::string> const& words) {
  std::vector<char*> arguments;
  for (auto const& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  if (errno != ENOEXEC) return;
  auto shell = std::string("/bin/sh");
  auto script = path;
  arguments[0] = script.data();
  arguments.insert(arguments.begin(), shell.data());
  ::execv(shell.c_str(), arguments.data());
}

}  // namespace

std::string find_program(std::string const& name) {
  bool refused = false;
  if (!name.empty()) {
    for (auto const& path : places(name)) {
      auto const what = look_at(path);
      if (what == found::program) return path;
      refused = refused || what == found::not_for_us;
    }
  }
  if (refused) throw failure(not_executable, quoted(name) + " cannot be executed");
  throw failure(not_found, "there is no program " + quoted(name));
}

started_command start_command(std::string const& path, std::vector<std::string> const& words, signals const& as_found,
                              terminal const* foreground) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  auto const pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    if (foreground) foreground->give_to(::getpid());
    as_found.restore();
    execute(path, words);
    int const why = errno;
    [[maybe_unused]] auto const written = ::write(ends[1], &why, sizeof why);
    ::_exit(not_found);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return {};
  }
  // Both do it, so that it is done when either goes on.
  ::setpgid(pid, pid);
  return {pid, ends[0]};
}

}  // namespace latchkey::tool
