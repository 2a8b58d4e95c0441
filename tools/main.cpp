#include <fcntl.h>
#include <latchkey/error.hpp>
#include <unistd.h>

#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/say.hpp>
#include <cstdio>
#include <exception>
#include <options/connection.hpp>
#include <options/help.hpp>
#include <options/parse.hpp>
#include <string>
#include <subcommands.hpp>
#include <vector>

namespace latchkey::tool {
namespace {

int print(std::string const& text) {
  bool const written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? yes : internal_error;
}

// What the caller has closed would become the number of a socket, to which a message would then be written. Commands
// find it closed, and writing fails as it would have.
void fill_standard_descriptors() {
  for (int const one : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(one, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

int start(std::vector<std::string> const& arguments) {
  auto const line = parse(arguments);
  if (line.has("version")) return print(version_text());
  if (line.has("help")) return print(help_text(line.which()));
  if (line.has("manual")) return print(manual_text());
  set_loudness(line.has("quiet") ? loudness::quiet : line.has("verbose") ? loudness::verbose : loudness::normal);
  auto const name = line.which()->name;
  if (name == "run") return run(line);
  if (name == "acquire") return acquire(line);
  if (name == "extend") return extend(line);
  if (name == "held") return held(line);
  if (name == "release") return release(line);
  if (name == "force-unlock") return force_unlock(line);
  if (name == "status") return status(line);
  if (name == "list") return list(line);
  if (name == "wait") return wait(line);
  if (name == "watch") return watch(line);
  if (name == "bench") return bench(line);
  if (name == "doctor") return doctor(line);
  if (name == "completion") return print(completion_for(line.operands().front()));
  throw failure(internal_error, "this subcommand does nothing");
}

}  // namespace
}  // namespace latchkey::tool

int main(int count, char** words) try {
  latchkey::tool::fill_standard_descriptors();
  std::vector<std::string> const arguments(words + 1, words + count);
  latchkey::tool::hide_passwords(count, words);
  auto const code = latchkey::tool::start(arguments);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  throw latchkey::tool::failure(latchkey::tool::internal_error, "the result cannot be written");
} catch (latchkey::tool::failure const& error) {
  if (*error.what()) latchkey::tool::complain(error.what());
  return error.code();
} catch (latchkey::lock_error const& error) {
  auto const said = latchkey::tool::failure_of("failed", error);
  latchkey::tool::complain(said.what());
  return said.code();
} catch (std::exception const& error) {
  latchkey::tool::complain(std::string("a fault of this program: ") + error.what());
  return latchkey::tool::internal_error;
}
