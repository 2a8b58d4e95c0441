#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include <base/say.hpp>
#include <cstring>
#include <run/front.hpp>

// What signals mean to the front.
namespace latchkey::tool {
namespace {

// After a signal that ends us: to leave the queue.
constexpr milliseconds last_words{800};

}  // namespace

void front::read_signals() {
  signals_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code const& error) {
    if (error) return;
    signalfd_siginfo one{};
    while (phase_ != phase::done && ::read(signals_.native_handle(), &one, sizeof one) == sizeof one)
      signalled(static_cast<int>(one.ssi_signo));
    if (phase_ != phase::done) read_signals();
  });
}

void front::signalled(int number) {
  if (number == SIGCHLD) return look_at_keeper();
  if (phase_ == phase::running) {
    overtaken_ = number == SIGCONT && stop_passed_;
    if (number == SIGCONT) return continued();
    stop_passed_ = stop_passed_ || number == SIGTSTP;
    passed_int_ = passed_int_ || number == SIGINT;
    keeper_.send("signal", number);
    return;
  }
  if (phase_ == phase::releasing || number == SIGCONT) return;
  if (number == SIGTSTP) {
    ::kill(::getpid(), SIGSTOP);
    return;
  }
  if (death_ != 0) return;
  death_ = number;
  outcome_.reason = std::string("ended by SIG") + ::sigabbrev_np(number);
  limit_.expires_after(last_words);
  limit_.async_wait([this](error_code const& ended) {
    if (!ended) io_.stop();
  });
  cancel_.emit(asio::cancellation_type::terminal);
}

// What was waited for has answered: the client takes back what it may have been granted.
void front::leave(int) {
  phase_ = phase::releasing;
  hold_.reset();
  client_->async_close(asio::bind_executor(io_, [this](error_code const&) { io_.stop(); }));
}

// The command may be stopped, and its lease over: it goes on when the server has said that it is not.
void front::continued() {
  to_continue_ = true;
  if (confirming_) return;
  confirming_ = true;
  hold_->confirm(
      [this](error_code error, bool held) { asio::post(io_, [this, error, held] { confirmed(error, held); }); });
}

void front::confirmed(error_code const& error, bool held) {
  confirming_ = false;
  if (phase_ != phase::running || error) return;  // asked again at the next tick
  to_continue_ = false;
  if (!held || !hold_->held()) return lost(make_error_code(errc::lease_lost));
  send_deadline();
  if (screen_.is_ours_alone() || (had_terminal_ && screen_.is_ours())) screen_.give_to(command_);
  keeper_.send("signal", SIGCONT);
}

void front::look_at_keeper() {
  int how = 0;
  auto const found = ::waitpid(keeper_process_, &how, WNOHANG | WUNTRACED | WCONTINUED);
  if (found != keeper_process_) return;
  if (WIFCONTINUED(how)) keeper_stopped_ = false;
  if (!WIFSTOPPED(how)) return;
  keeper_stopped_ = true;
  if (phase_ == phase::running) without_keeper();
}

// It cannot end the command any more, nor start it; whoever stopped it may not continue it.
void front::without_keeper() {
  hold_->stop_renewal();
  say("the keeper of " + quoted(plan_.name) + " is stopped; it ends in " + in_words(left()));
  tick();
}

}  // namespace latchkey::tool
