#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/kinds.hpp>
#include <base/say.hpp>
#include <run/front.hpp>
#include <run/processes.hpp>
#include <utility>

namespace latchkey::tool {
namespace {

using std::chrono::seconds;

// How long a server may be away while it is waited for: it may restart.
constexpr seconds patience{15};
constexpr seconds release_limit{5};
constexpr milliseconds refusal_limit{500};
constexpr milliseconds words_limit{100};

// Of a server that has not answered yet no event tells: what is known of it comes with exceptions alone.
std::string words_about(client const& of) {
  try {
    of.connect(words_limit);
  } catch (lock_error const& error) {
    return std::string(error.server_text());
  }
  return {};
}

}  // namespace

front::front(run_plan const& plan, message_end keeper, pid_t keeper_process, signals const& as_found,
             terminal const& screen, outcome& ended)
    : plan_(plan),
      keeper_(std::move(keeper)),
      keeper_process_(keeper_process),
      screen_(screen),
      outcome_(ended),
      signals_(io_, ::signalfd(-1, &as_found.read(), SFD_CLOEXEC | SFD_NONBLOCK)),
      messages_(io_, ::fcntl(keeper_.socket(), F_DUPFD_CLOEXEC, 0)),
      timer_(io_),
      limit_(io_),
      in_terminal_(screen.is_ours()) {
  adopt_orphans();
}

int front::run() {
  read_signals();
  hear();
  auto settings = plan_.server.settings;
  settings.on_event = [this](event const& what) {
    auto text = std::string(to_string(what.type));
    if (!what.text.empty()) (text += ": ") += what.text;
    if (what.error) (text += ": ") += what.error.message();
    explain(text);
    asio::post(io_, [this, type = what.type, error = what.error, words = std::string(refusal_in(what)),
                     lock = std::string(what.lock)] {
      if (type == event_type::waiting || error == errc::busy) {
        busy_ = lock;
        if (phase_ == phase::naming) limit_.cancel();
      }
      happened(type, error, words);
    });
  };
  try {
    client_.emplace(plan_.server.uri, std::move(settings));
    connect();
    tick();
    io_.run();
  } catch (lock_error const& error) {
    throw failure_of("cannot use the server", error);
  }
  if (death_ != 0) return -death_;  // there is no time to wait for what may not come
  hold_.reset();
  client_.reset();
  if (phase_ != phase::done) throw failure(internal_error, "nothing was left to do");
  return code_;
}

void front::happened(event_type type, error_code const& error, std::string const& words) {
  if (!words.empty()) words_ = words;
  if (type == event_type::connected) {
    away_since_ = never;
    words_.clear();
  }
  if (type != event_type::connect_failed) return;
  refusal_ = error;
  if (away_since_ == never) away_since_ = boot_clock();
}

void front::connect() {
  limit_by(phase::connecting);
  client_->async_connect(asio::bind_cancellation_slot(
      cancel_.slot(), asio::bind_executor(io_, [this](error_code const& error) { connected(error); })));
}

// Whoever does not wait for others waits for the server only so long.
void front::limit_by(phase of) {
  limit_.expires_after(connect_limit(plan_.wait));
  limit_.async_wait([this, of](error_code const& ended) {
    if (!ended && phase_ == of) cancel_.emit(asio::cancellation_type::terminal);
  });
}

void front::connected(error_code const& error) {
  limit_.cancel();
  if (death_ != 0) return leave(death_);
  if (!error) return acquire();
  constexpr std::string_view what = "cannot use the server";
  // What the client had to say about it comes by another thread, and has been sent before: why it could not connect.
  if (error == asio::error::operation_aborted || error == errc::connect_failed) {
    return asio::post(io_, [this, what] {
      bool const known = refusal_.category() == error_category();
      if (words_.empty()) words_ = words_about(*client_);
      auto const said = failure_of(what, known ? refusal_ : make_error_code(errc::connect_failed), words_);
      give_up(said.code(), said.what());
    });
  }
  // The server's own words come with exceptions alone.
  try {
    client_->connect(refusal_limit);
    acquire();
  } catch (lock_error const& refusal) {
    auto const said = refusal.code() == error ? failure_of(what, refusal) : failure_of(what, error, words_);
    give_up(said.code(), said.what());
  }
}

void front::acquire() {
  phase_ = phase::waiting;
  if (plan_.wait == milliseconds(0)) limit_by(phase::waiting);
  auto const left = plan_.wait == forever ? forever : std::max(plan_.wait - since_start(), milliseconds(0));
  acquire_hold(*client_, plan_, left, io_.get_executor(), cancel_.slot(),
               [this](error_code error, std::optional<hold> given) { granted(error, std::move(given)); });
}

void front::granted(error_code const& error, std::optional<hold> given) {
  outcome_.waited = since_start();
  hold_ = std::move(given);
  if (death_ != 0) return leave(death_);
  if (phase_ != phase::waiting) return;
  if (hold_) return begin();
  if (!error) return name_busy();
  // By our own limit.
  bool const late = error == asio::error::operation_aborted;
  auto const refusal = late ? lock_error(errc::timeout) : refusal_of(*client_, plan_, error);
  auto const said = failure_of("cannot take " + quoted(plan_.name), refusal.code(),
                               refusal.server_text().empty() ? std::string_view(words_) : refusal.server_text());
  give_up(said.code(), said.what());
}

// Which of several locks it was is told by an event, which comes by another thread.
void front::name_busy() {
  phase_ = phase::naming;
  outcome_.what = "busy";
  limit_.expires_after(busy_.empty() && !plan_.also.empty() ? refusal_limit : milliseconds(0));
  limit_.async_wait([this](error_code const&) {
    if (death_ != 0) return leave(death_);
    give_up(plan_.busy_code, quoted(busy_.empty() ? plan_.name : busy_) + " is still busy");
  });
}

void front::give_up(int code, std::string const& reason) {
  outcome_.reason = reason;
  if (outcome_.what == "busy")
    say(reason);
  else
    complain(reason);
  finish(code);
}

void front::tick() {
  auto pause = milliseconds(100);
  if (phase_ == phase::waiting || phase_ == phase::connecting) tick_waiting();
  if (phase_ == phase::running) {
    tick_running();
    // What is told late is told as too early a deadline.
    auto const next = !enforces() ? plan_.lease : lost_ ? pause : to_keeper_deadline();
    pause = std::clamp(std::min(plan_.lease / 30, next), milliseconds(5), milliseconds(1'000));
  }
  if (phase_ == phase::done) return;
  timer_.expires_after(pause);
  timer_.async_wait([this](error_code const& ended) {
    if (!ended) tick();
  });
}

std::string front::what_is_waited_for() const {
  if (busy_.empty()) return an_answer_about(plan_.name, words_);
  auto const none = plan_.kind != "semaphore" || plan_.permits ? "" : "; if nobody has made any, --permits N does";
  return end_of_others(plan_.kind, busy_) + none;
}

void front::tick_waiting() {
  if (!told_ && since_start() >= seconds(1)) {
    told_ = true;
    say("waiting for " + (phase_ == phase::connecting ? "the server" : what_is_waited_for()));
  }
  if (away_since_ == never || phase_ != phase::waiting) return;
  look_after_server();
  if (boot_clock() - away_since_ < milliseconds(patience).count() * one_ms) return;
  away_since_ = never;
  phase_ = phase::releasing;
  cancel_.emit(asio::cancellation_type::terminal);
  auto const said = failure_of("the server is gone", make_error_code(errc::connect_failed), words_);
  give_up(said.code(), said.what());
}

// Of several connections one can fail, or a sentinel, while the server answers.
void front::look_after_server() {
  if (std::exchange(asking_, true)) return;
  ask_server(*client_, plan_, io_.get_executor(), [this](error_code const& error) {
    asking_ = false;
    bool const refused = error == errc::server_error;  // an answer, too
    if (!error || refused) away_since_ = never;
  });
}

void front::release() {
  phase_ = phase::releasing;
  outcome_.held = milliseconds((boot_clock() - granted_at_) / one_ms);
  limit_.expires_after(release_limit);
  limit_.async_wait([this](error_code const& ended) {
    if (!ended) released(make_error_code(errc::timeout), release_result::unknown);
  });
  hold_->release(
      [this](error_code error, release_result how) { asio::post(io_, [this, error, how] { released(error, how); }); });
}

void front::released(error_code const& error, release_result how) {
  if (phase_ != phase::releasing) return;
  limit_.cancel();
  if (error) say(quoted(plan_.name) + " could not be released, and ends with its lease: " + error.message());
  if (!error && how == release_result::expired && !lost_) {
    lost_ = true;
    outcome_.reason = "the lock had been removed before it was released";
    complain(quoted(plan_.name) + ": " + outcome_.reason);
  }
  if (lost_) outcome_.what = "lost";
  if (lost_ && enforces()) return finish(plan_.lost_code);
  bool const interrupted = in_terminal_ && outcome_.signal == SIGINT;
  // The key would have reached our whole group, had the command not been in one of its own. We are not ended by it yet.
  if (interrupted && !passed_int_) ::kill(0, SIGINT);
  finish(interrupted ? -SIGINT : code_);
}

void front::finish(int code) {
  code_ = code;
  phase_ = phase::done;
  io_.stop();
}

}  // namespace latchkey::tool
