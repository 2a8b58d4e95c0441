// The modelled server in the place of a redis-server, in real time: understands of its words what the tests need, and
// ends with an error at any other. What such a server shows on its command line is `redis-server` for test/support
// alone.

#include <host.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

namespace {

// Without a meaning here: nothing is written, and nobody else can come in.
std::set<std::string_view> const without_effect = {"daemonize", "bind",       "save",        "dir",
                                                   "logfile",   "appendonly", "appendfsync", "enable-debug-command"};

int refuse(std::string const& why) {
  std::fprintf(stderr, "latchkey_double: %s\n", why.c_str());
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string socket, password;
  int port = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view const name = argv[i], value = argv[i + 1];
    if (!name.starts_with("--")) return refuse("no option: " + std::string(name));
    auto const option = name.substr(2);
    if (option == "unixsocket")
      socket = value;
    else if (option == "port")
      port = std::atoi(argv[i + 1]);
    else if (option == "requirepass")
      password = value;
    else if (option == "appendonly" && value == "yes")
      return refuse("it keeps nothing when its process ends");
    else if (!without_effect.contains(option))
      return refuse("unknown option " + std::string(name));
  }
  std::remove(socket.c_str());  // of one that was killed
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  latchkey::testing::host redis(socket, static_cast<std::uint16_t>(port));
  redis.ask([&] {
    redis.real_time();
    redis.redis().password = password;
  });
  int signal = 0;
  ::sigwait(&ends, &signal);
  return EXIT_SUCCESS;
} catch (std::exception const& problem) {
  return refuse(problem.what());
}
