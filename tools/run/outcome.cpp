#include <boost/json.hpp>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/exit_code.hpp>
#include <base/json.hpp>
#include <base/say.hpp>
#include <memory>
#include <run/outcome.hpp>

namespace latchkey::tool {
namespace {

template <class Value>
boost::json::value or_null(std::optional<Value> const& value) {
  return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

[[noreturn]] void cannot_write(std::string const& path) {
  throw failure(bad_setting, "--result: cannot write " + quoted(path) + ": " + ::strerror(errno));
}

}  // namespace

// Of a link: what it leads to, since it would be replaced itself.
std::string file_of_result(std::string const& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0) {
    if (!S_ISREG(about.st_mode)) throw failure(bad_setting, "--result: " + quoted(path) + " is no regular file");
    std::unique_ptr<char, void (*)(void*)> const real(::realpath(path.c_str(), nullptr), ::free);
    if (!real) cannot_write(path);
    return real.get();
  }
  auto const slash = path.rfind('/');
  auto const folder = slash == path.npos ? std::string(".") : path.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw failure(bad_setting, "--result: cannot write in " + quoted(folder));
  return path;
}

void write_outcome(std::string const& given, outcome const& ended) {
  auto const path = file_of_result(given);
  boost::json::object const made{{"schema", 1},
                                 {"outcome", ended.what},
                                 {"exit", or_null(ended.exit)},
                                 {"signal", or_null(ended.signal)},
                                 {"waited_ms", ended.waited.count()},
                                 {"held_ms", ended.held.count()},
                                 {"fence", or_null(ended.fence)},
                                 {"reason", without_passwords(ended.reason)}};
  auto const line = json_text(made) + '\n';
  auto const beside = path + '.' + std::to_string(::getpid());
  int const file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) cannot_write(path);
  bool const written = ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (::close(file) != 0 || !written || ::rename(beside.c_str(), path.c_str()) != 0) {
    int const why = errno;
    ::unlink(beside.c_str());
    errno = why;
    cannot_write(path);
  }
}

}  // namespace latchkey::tool
