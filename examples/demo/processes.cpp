#include "processes.hpp"
#include "report.hpp"
#include "worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <system_error>
#include <utility>

namespace demo {

namespace {

[[noreturn]] void fail(char const* what) { throw std::system_error(errno, std::generic_category(), what); }

// `from` must survive the placing of the others, so callers pass descriptors above the fixed numbers.
void place(int from, int to) {
  if (::dup2(from, to) < 0) ::_exit(126);
}

int above_fixed_numbers(int descriptor) {
  int const copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, go_descriptor + 1);
  if (copy < 0) fail("cannot start a worker");
  return copy;
}

class pipe_ends {
 public:
  pipe_ends() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) fail("cannot make a pipe");
    read_ = both[0];
    write_ = both[1];
  }
  pipe_ends(pipe_ends const&) = delete;
  pipe_ends& operator=(pipe_ends const&) = delete;
  ~pipe_ends() {
    if (read_ >= 0) ::close(read_);
    if (write_ >= 0) ::close(write_);
  }
  int read() const { return read_; }
  int write() const { return write_; }
  int take_read() { return std::exchange(read_, -1); }
  int take_write() { return std::exchange(write_, -1); }

 private:
  int read_ = -1;
  int write_ = -1;
};

}  // namespace

processes::processes(shared_job const& shared) {
  pipe_ends ready;
  pipe_ends go;
  try {
    for (std::size_t i = 0; i < shared->processes; ++i) start(shared, i, ready.write(), go.read());
  } catch (...) {
    kill_all();
    throw;
  }
  ready_end_ = ready.take_read();
  go_end_ = go.take_write();
  ::fcntl(ready_end_, F_SETFL, O_NONBLOCK);
}

processes::~processes() {
  kill_all();
  if (ready_end_ >= 0) ::close(ready_end_);
  if (go_end_ >= 0) ::close(go_end_);
}

void processes::start(shared_job const& shared, std::size_t index, int ready, int go) {
  auto const number = std::to_string(index);
  char const* const arguments[] = {"latchkey_demo", "--worker", number.c_str(), nullptr};
  pid_t const parent = ::getpid();
  pid_t const pid = ::fork();
  if (pid < 0) fail("cannot start a worker");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    // Ctrl-C goes to the whole group; the coordinator alone decides what it means.
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGQUIT, SIG_IGN);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    int const job_copy = above_fixed_numbers(shared.descriptor());
    int const ready_copy = above_fixed_numbers(ready);
    int const go_copy = above_fixed_numbers(go);
    place(job_copy, job_descriptor);
    place(ready_copy, ready_descriptor);
    place(go_copy, go_descriptor);
    ::execv("/proc/self/exe", const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  pids_.push_back(pid);
  ++running_;
}

bool processes::all_ready() {
  char bytes[job::most_workers];
  auto const count = ::read(ready_end_, bytes, sizeof bytes);
  if (count > 0) ready_count_ += static_cast<std::size_t>(count);
  return ready_count_ == pids_.size();
}

void processes::go() { ::close(std::exchange(go_end_, -1)); }

void processes::collect() {
  for (auto& pid : pids_) {
    int status = 0;
    if (pid <= 0 || ::waitpid(pid, &status, WNOHANG) != pid) continue;
    pid = -1;
    --running_;
    if (!trouble_.empty() || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    trouble_ = WIFSIGNALED(status) ? std::string("a worker was ended by ") + ::strsignal(WTERMSIG(status))
                                   : "a worker ended with exit code " + std::to_string(WEXITSTATUS(status));
  }
}

void processes::kill_all() noexcept {
  for (auto& pid : pids_) {
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    --running_;
  }
}

namespace {

constexpr auto between_lines = std::chrono::seconds(5);
constexpr std::size_t label_width = 24;
constexpr char const* clear_line = "\r\x1b[K";

std::string outcome(row_result const& result) {
  auto text = std::to_string(result.done) + " requests in " + fixed(result.seconds, 1) + " s";
  if (result.cut_off) text += ", cut off";
  if (!result.error.empty()) text += ", " + result.error;
  if (result.oversold() != 0) text += ", " + std::to_string(result.oversold()) + " oversold";
  return text;
}

}  // namespace

std::string bar(std::int64_t done, std::int64_t all, std::size_t width) {
  auto const part =
      all > 0 ? static_cast<double>(std::clamp<std::int64_t>(done, 0, all)) / static_cast<double>(all) : 0;
  auto const filled = static_cast<std::size_t>(part * static_cast<double>(width));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

std::string progress::head() const {
  auto label = label_;
  label.resize(std::max(label.size(), label_width), ' ');
  return "[" + std::to_string(number_) + "/" + std::to_string(rows_) + "] " + label + " ";
}

void progress::begin(row const& shown) {
  ++number_;
  label_ = shown.label;
  begun_ = clock::now();
  next_line_ = begun_ + between_lines;
}

void progress::update(std::int64_t done, std::int64_t all) {
  auto const now = clock::now();
  auto const passed = fixed(std::chrono::duration<double>(now - begun_).count(), 1) + " s";
  auto const count = std::to_string(done) + "/" + std::to_string(all);
  if (terminal_) {
    std::cout << clear_line << head() << bar(done, all, 20) << " " << count << "  " << passed << std::flush;
  } else if (now >= next_line_) {
    next_line_ += between_lines;
    std::cout << head() << count << " after " << passed << std::endl;
  }
}

void progress::end(row_result const& result) {
  clear();
  std::cout << head() << outcome(result) << std::endl;
}

void progress::clear() {
  if (terminal_) std::cout << clear_line << std::flush;
}

signals::signals() {
  ::sigemptyset(&set_);
  for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&set_, number);
  ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  // A reader of our output who goes away must not end us before we have cleaned up.
  ::signal(SIGPIPE, SIG_IGN);
}

void signals::wait(std::chrono::milliseconds limit) const {
  timespec const time{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
  int const number = ::sigtimedwait(&set_, nullptr, &time);
  if (number > 0 && number != SIGCHLD) throw interrupted(number);
}

}  // namespace demo
