#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <run/command.hpp>
#include <run/keeper.hpp>
#include <run/processes.hpp>
#include <run/terminal.hpp>

namespace latchkey::tool {
namespace {

class keeper {
 public:
  keeper(message_end front, keeper_orders const& orders, signals const& as_found, terminal const& screen)
      : front_(std::move(front)),
        orders_(orders),
        as_found_(as_found),
        terminal_(screen),
        grace_(orders.grace.count() * one_ms) {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    children_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  }

  // Until everything below is gone, or nobody may see what is left.
  void run() {
    while (!done_) {
      wait();
      hear();
      look_at_children();
      if (!done_) look_at_clock();
    }
    terminal_.take_from(command_.pid);
    front_.send("ended", status_.value_or(-1));
  }

 private:
  void wait();
  void hear();
  void obey(message_end::message const& said);
  void start();
  void look_at_start();
  void look_at_children();
  void look_at_clock();
  void command_ended();
  void lose();
  void pass_on(int number);
  boot_time next_time() const;
  bool enforces() const { return command_.pid > 0 && orders_.loss != on_loss::ignore; }

  message_end front_;
  keeper_orders const& orders_;
  signals const& as_found_;
  terminal const& terminal_;
  boot_time const grace_;
  int children_ = -1;
  int timer_ = -1;

  started_command command_;
  bool done_ = false;
  bool front_gone_ = false;
  bool to_end_ = false;        // somebody asked the command to end: what it leaves behind is ended too
  bool ending_ = false;        // TERM was sent to all, since the lease is over or about to be
  std::optional<int> status_;  // of the command
  boot_time deadline_ = never;
  boot_time kill_at_ = never;
  boot_time tell_at_ = never;
};

void keeper::wait() {
  auto const next = next_time();
  itimerspec when{};
  if (next != never) {
    // Zero would disarm it; what has passed fires at once.
    auto const at = std::max<boot_time>(next, 1);
    when.it_value.tv_sec = at / 1'000'000'000;
    when.it_value.tv_nsec = at % 1'000'000'000;
  }
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  // A negative descriptor is not looked at.
  std::array<pollfd, 4> sources{{{front_gone_ ? -1 : front_.socket(), POLLIN, 0},
                                 {children_, POLLIN, 0},
                                 {timer_, POLLIN, 0},
                                 {command_.failed, POLLIN, 0}}};
  ::poll(sources.data(), sources.size(), -1);
  std::array<char, sizeof(signalfd_siginfo) * 16> dropped;
  while (::read(children_, dropped.data(), dropped.size()) > 0) continue;
  while (::read(timer_, dropped.data(), dropped.size()) > 0) continue;
  if (sources[3].revents) look_at_start();
}

void keeper::hear() {
  while (!front_gone_ && !done_) {
    auto const said = front_.receive();
    if (!said) return;
    if (!said->word.empty()) {
      obey(*said);
      continue;
    }
    front_gone_ = true;
    if (command_.pid < 0) {
      done_ = true;
    } else {
      kill_at_ = 0;
    }
  }
}

void keeper::obey(message_end::message const& said) {
  if (said.word == "deadline") {
    deadline_ = said.number();
  } else if (said.word == "signal") {
    pass_on(static_cast<int>(said.number()));
  } else if (said.word == "lost") {
    lose();
  } else if (said.word == "go") {
    start();
  } else if (said.word == "env") {
    auto const equals = said.rest.find('=');
    auto const name = said.rest.substr(0, equals);
    if (equals == said.rest.npos)
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), said.rest.substr(equals + 1).c_str(), 1);
  }
}

void keeper::start() {
  if (deadline_ <= boot_clock()) {
    front_.send("overdue");
    done_ = true;
    return;
  }
  command_ = start_command(orders_.path, orders_.words, as_found_, terminal_.is_ours_alone() ? &terminal_ : nullptr);
  if (command_.pid > 0) return;
  front_.send("failed", errno);
  done_ = true;
}

// The pipe is closed by execve; what can be read from it is why there was none.
void keeper::look_at_start() {
  int why = 0;
  if (::read(command_.failed, &why, sizeof why) == sizeof why)
    front_.send("failed", why);
  else
    front_.send("started", command_.pid);
  ::close(std::exchange(command_.failed, -1));
}

void keeper::look_at_children() {
  for (;;) {
    int how = 0;
    auto const child = ::waitpid(-1, &how, WNOHANG | WUNTRACED);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0 && status_) done_ = true;  // orphans come to us, so that without children there is nothing below us
    if (child <= 0) return;
    if (child != command_.pid) continue;
    if (WIFSTOPPED(how)) {
      front_.send("stopped", WSTOPSIG(how));
    } else {
      status_ = how;
      command_ended();
    }
  }
}

void keeper::command_ended() {
  if (command_.failed >= 0) look_at_start();
  if (kill_at_ == 0 || ending_) return;
  if (orders_.left == orphans::ignore) {
    done_ = true;
    return;
  }
  tell_at_ = boot_clock() + 1'000 * one_ms;
  if (orders_.left == orphans::wait && !to_end_) return;
  signal_descendants(::getpid(), SIGTERM);
  kill_at_ = std::min(kill_at_, boot_clock() + grace_);
}

void keeper::lose() {
  if (std::exchange(ending_, true)) return;
  if (orders_.loss == on_loss::kill) {
    kill_at_ = 0;
    return;
  }
  signal_descendants(::getpid(), SIGTERM);
  kill_at_ = std::min(kill_at_, boot_clock() + grace_);
}

void keeper::pass_on(int number) {
  if (command_.pid < 0) return;
  if (!status_) {
    ::kill(-command_.pid, number);
  } else {
    // The number of the group may be another's by now, but not that of a process below us.
    for (auto const one : descendants_of(::getpid()))
      if (::getpgid(one) == command_.pid) ::kill(one, number);
  }
  if (!asks_to_end(number) || std::exchange(to_end_, true)) return;
  if (status_) command_ended();
}

boot_time keeper::next_time() const {
  auto next = std::min(kill_at_, tell_at_);
  if (enforces() && !ending_) next = std::min(next, orders_.loss == on_loss::term ? deadline_ - grace_ : deadline_);
  return std::min(next, enforces() ? deadline_ : never);
}

void keeper::look_at_clock() {
  auto const now = boot_clock();
  if (enforces() && !ending_ && deadline_ - (orders_.loss == on_loss::term ? grace_ : 0) <= now) {
    ending_ = true;
    kill_at_ = std::min(kill_at_, deadline_);
    front_.send("overdue");
    if (deadline_ > now) signal_descendants(::getpid(), SIGTERM);
  }
  if (enforces() && deadline_ <= now) kill_at_ = std::min(kill_at_, now);
  if (tell_at_ <= now) {
    tell_at_ = never;
    auto const left = descendants_of(::getpid());
    if (!left.empty()) front_.send("orphan", std::to_string(left.front()) + ' ' + name_of(left.front()));
  }
  if (kill_at_ > now) return;
  auto const how = kill_all_descendants(command_.pid);
  if (!status_) status_ = how;
  done_ = true;
}

}  // namespace

void keep(message_end front, keeper_orders const& orders, signals const& as_found, terminal const& screen) {
  // In a group of its own: what is sent to the front's group, by a shell or a terminal, is not meant for it.
  ::setpgid(0, 0);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  adopt_orphans();
  keeper(std::move(front), orders, as_found, screen).run();
  ::_exit(0);
}

}  // namespace latchkey::tool
