#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <latchkey/latchkey.hpp>

#include <base/exit_code.hpp>
#include <optional>
#include <run/hold.hpp>
#include <run/outcome.hpp>
#include <run/plan.hpp>
#include <run/signals.hpp>
#include <run/terminal.hpp>
#include <string>

namespace latchkey::tool {

// The process that the caller of `latchkey run` sees: it holds the lease, and tells the keeper until when.
//
// Everything here runs on one thread. Renewals run on the client's own, so that nothing that is slow here delays them.
class front {
 public:
  front(run_plan const& plan, message_end keeper, pid_t keeper_process, signals const& as_found, terminal const& screen,
        outcome& ended);

  // The exit code; less than zero: die of that signal, at once.
  int run();

 private:
  enum class phase { connecting, waiting, naming, running, releasing, done };

  // front.cpp
  void connect();
  void limit_by(phase of);
  void connected(error_code const& error);
  void acquire();
  void granted(error_code const& error, std::optional<hold> given);
  void name_busy();
  std::string what_is_waited_for() const;
  void give_up(int code, std::string const& reason);
  void release();
  void released(error_code const& error, release_result how);
  void finish(int code);
  void happened(event_type type, error_code const& error, std::string const& words);
  void tick();
  void tick_waiting();
  void look_after_server();
  void tick_running();

  // front_command.cpp
  void begin();
  void hear();
  void obey(message_end::message const& said);
  void failed(int why);
  void stopped(int number);
  void orphan_left(std::string const& rest);
  void ended(int status);
  void keeper_gone();
  void lost(error_code const& why);
  void overdue();
  void send_deadline();
  std::string why_late() const;
  milliseconds to_keeper_deadline() const;

  // front_signals.cpp
  void read_signals();
  void signalled(int number);
  void leave(int number);
  void continued();
  void confirmed(error_code const& error, bool held);
  void look_at_keeper();
  void without_keeper();

  milliseconds since_start() const { return milliseconds((boot_clock() - began_) / one_ms); }
  milliseconds left() const { return milliseconds((sent_deadline_ - boot_clock()) / one_ms); }
  bool enforces() const { return plan_.orders.loss != on_loss::ignore; }

  run_plan const& plan_;
  message_end keeper_;
  pid_t const keeper_process_;
  terminal const& screen_;
  outcome& outcome_;
  boot_time const began_ = boot_clock();

  asio::io_context io_{1};
  asio::posix::stream_descriptor signals_;
  asio::posix::stream_descriptor messages_;
  asio::steady_timer timer_;
  asio::steady_timer limit_;
  asio::cancellation_signal cancel_;
  std::optional<client> client_;
  std::optional<hold> hold_;

  phase phase_ = phase::connecting;
  int code_ = internal_error;
  int death_ = 0;            // the signal to die of, before the grant
  bool failed_ = false;      // the command was not executed
  bool passed_int_ = false;  // to the command
  bool const in_terminal_;   // whose keys reach us
  bool told_ = false;        // for whom we wait
  bool lost_ = false;        // the lock, while the command ran
  bool keeper_ended_ = false;
  bool keeper_stopped_ = false;  // it can end nothing
  bool had_terminal_ = false;    // the command, when it stopped
  bool stop_passed_ = false;     // to the command, which has not stopped yet
  bool overtaken_ = false;       // by a SIGCONT: what was passed on before
  bool to_continue_ = false;     // when the server has confirmed the hold
  bool confirming_ = false;
  pid_t command_ = -1;
  boot_time granted_at_ = never;
  boot_time sent_deadline_ = 0;
  boot_time away_since_ = never;  // the server, since a connection could not be made
  bool asking_ = false;           // the server, whether it answers
  boot_time late_since_ = never;  // the keeper, since its deadline passed
  error_code refusal_;            // why no connection could be made
  std::string words_;             // the server's last
  std::string busy_;              // the lock that was found so
};

}  // namespace latchkey::tool
