#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <hand/tokens.hpp>
#include <run/front.hpp>
#include <run/processes.hpp>

// What the front and its keeper tell each other.
namespace latchkey::tool {
namespace {

// After its deadline the keeper has this long to say that the command has ended.
constexpr boot_time keeper_limit = 200 * one_ms;
// So long before its deadline the command is ended where the keeper is stopped.
constexpr milliseconds to_end{50};

}  // namespace

void front::begin() {
  phase_ = phase::running;
  granted_at_ = boot_clock();
  outcome_.fence = hold_->fence();
  hold_->on_lost([this](error_code why) { asio::post(io_, [this, why] { lost(why); }); });

  token about;
  about.names = plan_.also;
  about.names.insert(about.names.begin(), plan_.name);
  about.kind = plan_.kind;
  about.owner = hold_->owner();
  about.lease_ms = plan_.lease.count();
  about.fence = outcome_.fence;
  auto const tell = [this](std::string const& name, std::string const& value) {
    keeper_.send("env", "LATCHKEY_" + name + '=' + value);
  };
  tell("LOCK", plan_.name);
  tell("KIND", plan_.kind);
  tell("OWNER", about.owner);
  tell("TOKEN", write_token(about));
  tell("LEASE_MS", std::to_string(about.lease_ms));
  if (about.fence)
    tell("FENCE", std::to_string(*about.fence));
  else
    keeper_.send("env", "LATCHKEY_FENCE");  // that of a surrounding run numbers another lock
  if (auto const outer = tokens_of_callers(); !outer.empty()) tell("OUTER_TOKENS", outer);
  send_deadline();
  keeper_.send("go");
  if (keeper_stopped_) without_keeper();
}

void front::send_deadline() {
  auto const now = hold_->deadline();
  // It is counted in milliseconds, and moves by one without a renewal.
  if (now <= sent_deadline_ + 2 * one_ms) return;
  if (keeper_.send("deadline", now)) sent_deadline_ = now;
}

void front::tick_running() {
  if (hold_->held()) {
    hold_->renew();
    send_deadline();
  }
  if (to_continue_ && !confirming_) continued();
  bool const late =
      enforces() && !keeper_ended_ && (to_keeper_deadline() <= milliseconds(0) || (lost_ && keeper_stopped_));
  if (!late) late_since_ = never;
  if (late && late_since_ == never) late_since_ = boot_clock();
  if (late && (keeper_stopped_ || boot_clock() - late_since_ > keeper_limit)) {
    overdue();
    ::kill(keeper_process_, SIGKILL);
  }
}

// In place of a stopped one the command is ended in time, which takes a moment.
milliseconds front::to_keeper_deadline() const {
  return keeper_stopped_ ? left() - std::min(to_end, plan_.lease / 20) : left();
}

void front::hear() {
  messages_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code const& error) {
    if (error) return;
    while (phase_ != phase::done && !keeper_ended_) {
      auto const said = keeper_.receive();
      if (!said) return hear();
      obey(*said);
    }
  });
}

void front::obey(message_end::message const& said) {
  if (said.word == "started") {
    command_ = static_cast<pid_t>(said.number());
  } else if (said.word == "failed") {
    failed(static_cast<int>(said.number()));
  } else if (said.word == "stopped") {
    stopped(static_cast<int>(said.number()));
  } else if (said.word == "orphan") {
    orphan_left(said.rest);
  } else if (said.word == "overdue") {
    overdue();
  } else if (said.word == "ended") {
    keeper_ended_ = true;
    ended(static_cast<int>(said.number()));
  } else if (said.word.empty()) {
    keeper_gone();
  }
}

// It was there when we looked, but it does not run.
void front::failed(int why) {
  failed_ = true;
  code_ = why == ENOENT ? not_found : why == EAGAIN || why == ENOMEM ? no_fork : not_executable;
  outcome_.reason = "cannot execute " + quoted(plan_.orders.path) + ": " + ::strerror(why);
  complain(outcome_.reason);
}

void front::orphan_left(std::string const& rest) {
  auto const blank = rest.find(' ');
  say("the command has ended, but process " + rest.substr(0, blank) + " (" + rest.substr(blank + 1) +
      ") that it started has not: " + (plan_.orders.left == orphans::wait ? "waiting for it" : "it is being ended"));
}

void front::stopped(int number) {
  bool const for_terminal = number == SIGTTIN || number == SIGTTOU;
  if (number != SIGTSTP && !for_terminal) return;
  // Whoever stopped us has continued us by now, and will not do so once more.
  if (std::exchange(stop_passed_, false) && std::exchange(overtaken_, false)) return continued();
  if (for_terminal && screen_.is_ours()) {
    screen_.give_to(command_);
    keeper_.send("signal", SIGCONT);
    return;
  }
  if (!somebody_continues_us()) {
    // As the kernel, which stops nobody then.
    if (number == SIGTSTP) keeper_.send("signal", SIGCONT);
    return;
  }
  had_terminal_ = had_terminal_ || screen_.is_of(command_);
  screen_.take_from(command_);
  say(quoted(plan_.name) + " ends in " + in_words(left()) + " unless continued");
  sigset_t unread;
  ::sigpending(&unread);
  if (::sigismember(&unread, SIGCONT) == 1) return;  // a stop would take it back; it is read next
  // Who shares our group would have been stopped by the key, had the command not been in a group of its own. The signal
  // is blocked here, and SIGCONT takes it back.
  if (had_terminal_) ::kill(0, SIGTSTP);
  ::kill(::getpid(), SIGSTOP);
}

void front::ended(int status) {
  screen_.take_from(command_);
  ::waitpid(keeper_process_, nullptr, 0);
  if (phase_ != phase::running) return finish(unavailable);
  if (!failed_ && status >= 0) {
    outcome_.what = "ran";
    if (WIFEXITED(status)) {
      outcome_.exit = code_ = WEXITSTATUS(status);
    } else {
      outcome_.signal = WTERMSIG(status);
      code_ = 128 + *outcome_.signal;
    }
  }
  release();
}

// Killed. What it watched over is ours now.
void front::keeper_gone() {
  keeper_ended_ = true;
  if (phase_ != phase::running) {
    outcome_.reason = "the keeper was killed";
    if (phase_ == phase::connecting || phase_ == phase::waiting) {
      cancel_.emit(asio::cancellation_type::terminal);
      give_up(internal_error, outcome_.reason);
    }
    return;
  }
  auto const status = kill_all_descendants(command_);
  if (!lost_) {
    outcome_.reason = "the keeper was killed, and the command with it";
    complain(outcome_.reason);
  }
  code_ = internal_error;
  if (status >= 0 && WIFSIGNALED(status)) {
    outcome_.signal = WTERMSIG(status);
    code_ = 128 + *outcome_.signal;
  }
  screen_.take_from(command_);
  release();
}

void front::lost(error_code const& why) {
  if (phase_ != phase::running) return;
  if (!std::exchange(lost_, true)) {
    outcome_.reason = sent_deadline_ <= boot_clock() ? why_late() : why.message();
    complain(quoted(plan_.name) + " is lost: " + outcome_.reason +
             (enforces() ? "; the command is ended" : "; the command goes on"));
  }
  if (!enforces()) return;
  keeper_.send("lost");
  if (keeper_stopped_) tick();
}

// The deadline has come, or is so near that the command is asked to end.
std::string front::why_late() const {
  if (plan_.max_hold != forever && granted_at_ + plan_.max_hold.count() * one_ms <= sent_deadline_ + 500 * one_ms)
    return "it was held for " + in_words(plan_.max_hold);
  return "its lease could not be renewed";
}

void front::overdue() {
  if (std::exchange(lost_, true)) return;
  outcome_.reason = why_late();
  complain(quoted(plan_.name) + ": " + outcome_.reason + "; the command is ended");
}

}  // namespace latchkey::tool
