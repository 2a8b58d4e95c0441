#include <torture/kinds.hpp>
#include <torture/stage.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace latchkey::torture {

namespace {

constexpr char const* password = "torture";

std::unique_ptr<test::redis_server> new_server() {
  test::redis_options how;
  how.append_only = true;
  how.arguments = {
      "--user", "worker", "on", std::string(">") + password, "~*", "&*", "+@all", "--auto-aof-rewrite-min-size", "8mb"};
  return std::make_unique<test::redis_server>(how);
}

std::string uri_of(test::fault_proxy const& one) {
  return std::string("redis://worker:") + password + "@127.0.0.1:" + std::to_string(one.where().port);
}

int servers_for(options const& run) {
  if (!run.topology.empty()) return 0;
  int most = 1;
  for (auto kind : run.kinds) most = std::max(most, torture_kinds()[kind].servers);
  return most;
}

}  // namespace

stage::stage(options const& run, std::string folder)
    : run_(run), folder_(std::move(folder)), log_(coordinator_file(folder_)), seats_(at(run.processes)) {
  for (int s = servers_for(run); s > 0; --s) servers_.push_back(new_server());
  conditions_.resize(servers_.size());
  for (int i = 0; i < run.processes; ++i)
    for (auto const& server : servers_) proxies_.push_back(std::make_unique<test::fault_proxy>(server->where(), true));
}

stage::~stage() {
  for (auto const& one : seats_) {
    if (one.pid <= 0) continue;
    ::kill(one.pid, SIGKILL);
    ::waitpid(one.pid, nullptr, 0);
  }
}

void stage::spawn(int index) {
  auto& one = seats_[at(index)];
  std::vector<std::string> uris;
  for (int s = 0; s < servers(); ++s) uris.push_back(uri_of(proxy(index, s)));
  uris.insert(uris.end(), run_.more_servers.begin(), run_.more_servers.end());
  auto words = words_for_worker(run_, folder_, index, ++one.incarnation, uris);
  words.insert(words.begin(), "latchkey_torture");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  auto const errors = folder_ + "/worker-" + std::to_string(index) + ".errors";
  pid_t const parent = ::getpid();
  one.pid = ::fork();
  if (one.pid < 0) throw std::runtime_error("fork failed");
  if (one.pid > 0) return;
  // Only calls that are safe after fork in a program with threads.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int const file = ::open(errors.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(file, 1);
  ::dup2(file, 2);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(127);
}

void stage::kill(int index) {
  auto& one = seats_[at(index)];
  if (one.pid <= 0) return;
  resume(index);
  ::kill(one.pid, SIGKILL);
  int status = 0;
  ::waitpid(one.pid, &status, 0);
  one.pid = -1;
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return note_end(index, status);
  record line;
  line.what = what::kill;
  line.a = index;
  line.b = one.incarnation;
  log_.write(line);
}

void stage::stop(int index) {
  auto& one = seats_[at(index)];
  if (one.pid <= 0 || one.stopped_since != 0) return;
  ::kill(one.pid, SIGSTOP);
  one.stopped_since = now();
}

void stage::resume(int index) {
  auto& one = seats_[at(index)];
  if (one.pid <= 0 || one.stopped_since == 0) return;
  record line;
  line.what = what::pause;
  line.a = one.stopped_since;
  line.c = index;
  ::kill(one.pid, SIGCONT);
  line.b = now();
  one.stopped_since = 0;
  log_.write(line);
}

void stage::note_end(int index, int status) {
  seats_[at(index)].pid = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  accidents_.push_back("worker " + std::to_string(index) + "." + std::to_string(seats_[at(index)].incarnation) +
                       " ended with " +
                       (WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                          : "signal " + std::to_string(WTERMSIG(status))) +
                       "; its last words: worker-" + std::to_string(index) + ".errors");
}

int stage::running() {
  int count = 0;
  for (int i = 0; i < workers(); ++i) {
    int status = 0;
    if (lives(i) && ::waitpid(pid(i), &status, WNOHANG) == pid(i)) note_end(i, status);
    count += lives(i);
  }
  return count;
}

void stage::end_overdue() {
  for (int i = 0; i < workers(); ++i) {
    if (!lives(i)) continue;
    record line;
    line.what = what::overdue;
    line.a = i;
    line.b = seats_[at(i)].incarnation;
    log_.write(line);
    kill(i);
  }
}

bool stage::answers(int which) const {
  auto const& it = conditions_[at(which)];
  return !it.down && !it.frozen && now() >= it.sleeps_until;
}

void stage::freeze(int which) {
  server(which).pause();
  conditions_[at(which)].frozen = true;
  conditions_[at(which)].since = now();
}

void stage::log_outage(int which) {
  record line;
  line.what = what::outage;
  line.a = conditions_[at(which)].since;
  line.b = now();
  line.c = which;
  log_.write(line);
}

void stage::thaw(int which) {
  log_outage(which);
  server(which).resume();
  conditions_[at(which)].frozen = false;
}

void stage::sleep(int which, std::int64_t length) {
  auto& it = conditions_[at(which)];
  it.sleeper = std::make_unique<test::raw_redis>(server(which).admin());
  it.sleeper->send({"DEBUG", "SLEEP", std::to_string(static_cast<double>(length) / 1e9)});
  it.sleeps_until = now() + length + 10 * ms;
}

void stage::crash(int which) {
  server(which).kill();
  conditions_[at(which)].down = true;
  conditions_[at(which)].since = now();
}

void stage::start(int which) {
  log_outage(which);
  server(which).start();
  conditions_[at(which)].down = false;
}

}  // namespace latchkey::torture
