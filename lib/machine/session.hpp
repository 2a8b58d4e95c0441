#pragma once

#include <machine/context.hpp>
#include <machine/link.hpp>
#include <wire/server_error.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace latchkey::detail {

// Told by the session what concerns all names at once.
class session_user {
 public:
  virtual void trouble(error_code const& why, std::string_view text, bool transient) = 0;
  virtual bool needs_server() const = 0;                   // somebody waits, holds, or has something to say
  virtual std::span<kind const* const> kinds() const = 0;  // of all names so far

 protected:
  ~session_user() = default;
};

// The connections of a client to one server: opening, handshake, what was sent and not yet answered, discarding, and
// fencing what was discarded. The shared connection leads; the direct lane and the message connection go to its peer,
// are checked against it, and end with it. Bodies: session.cpp (opening and ending), handshake.cpp, dispatch.cpp
// (answers), sending.cpp (what leaves at the end of a turn), fencing.cpp (KILL, then what was unanswered).
class session {
 public:
  struct identity {
    std::string username;
    std::string password;
    int database = 0;
  };

  session(context& shared, identity who, session_user& user);
  ~session();

  // --- the engine ---
  void turn(io_actions& io);
  void opened(std::uint32_t serial);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text);
  void received(std::uint32_t serial, std::string_view bytes);
  void broken(std::uint32_t serial, error_code const& why);
  void on_link_timer(link& one);
  void on_timer();

  // --- the direct lane ---
  void want_direct();
  bool direct_idle() const;
  void lend_to(record& one);
  void lend_to(operation& plain);
  std::string& lane_bytes() { return lane_out_; }
  std::uint32_t lane_serial() const { return link_of(role::direct).serial; }
  bool lent(std::uint32_t serial) const;
  bool lane_answer(reply const& answer);  // true: lane_bytes() are to be sent again
  void lane_failed(std::uint32_t serial, error_code const& why);

  // --- plain calls ---
  void expire_plain(operation& call, error_code const& why);
  void forget_plain_calls(error_code const& why);  // closing

  bool quiet() const;
  bool connected() const { return link_of(role::shared).at == link::state::up; }

 private:
  link& link_of(role which) { return links_[static_cast<std::size_t>(which)]; }
  link const& link_of(role which) const { return links_[static_cast<std::size_t>(which)]; }
  link* find(std::uint32_t serial);

  // session.cpp
  void open_what_is_needed(io_actions& io);
  void open(link& one, io_actions& io);
  void ready(link& one);
  void failed(link& one, error_code const& why, std::string_view text, bool transient);
  void discard(link& one, error_code const& why, std::string_view text = {});
  void plan(link& one);
  void ping(link& one);
  void pause(unsigned n);

  // handshake.cpp
  void greet(link& one);
  void on_hello(link& one, sent_call const& call, reply const& answer);
  void greeted(link& one);
  void on_check(sent_call const& call, reply const& answer);
  void refuse_kill(std::string_view text);
  void ask_for_scripts(link& one);
  void learn_scripts(reply const& answer);

  // dispatch.cpp
  void on_reply(link& one, reply& answer);
  void on_message_reply(link& one, reply& answer);
  void on_script(sent_call& call, reply const& answer);
  void on_plain(sent_call& call, reply const& answer);
  void send_again(sent_call& call);
  void nothing_ran(sent_call& call, server_error const& why, std::string_view text);
  void unanswered(sent_call& call, discarded& from);

  // sending.cpp
  void send_requests();
  void send_records(unsigned order);
  void send_renewals();
  void send_plain();
  void send_subscriptions();
  void write_call(link& one, sent_call&& call, std::span<item const> items);
  void write_words(link& one, sent_call&& call);
  bool begin_script(words& command, script const& text);
  void script_words(sent_call& call, std::span<item const> items);
  void plain_words(sent_call& call);
  void make_lane_bytes();
  bool still_wanted(sent_call const& call) const;
  bool may_send() const;

  // fencing.cpp
  void remember(link& one, discarded&& what);
  void send_kills();
  void on_kill(sent_call const& call, reply const& answer);
  void settle_if_fenced();

  context& shared_;
  identity const who_;
  session_user& user_;
  std::array<link, 3> links_{link(role::shared), link(role::direct), link(role::messages)};
  std::uint32_t next_serial_ = 1;
  std::vector<std::uint32_t> closing_;  // serials that the engine is to close
  std::vector<std::uint32_t> lending_;  // serials that callers may borrow from now on
  std::vector<discarded> discarded_;
  std::vector<record*> unsettled_;             // wait until every discarded connection is fenced
  std::unordered_set<script const*> unknown_;  // scripts whose text goes next time
  std::vector<script const*> asked_for_;       // scripts that the handshake asks for
  bool kill_refused_ = false;
  bool check_refused_ = false;
  bool direct_wanted_ = false;
  bool reconnect_ = false;  // the server is the wrong one: discard after this answer
  unsigned pauses_ = 0;
  unsigned kill_failures_ = 0;
  instant paused_until_{};  // the server runs nothing at the moment
  instant kill_at_{};
  timer_node timer_;
  std::string lane_out_;
  sent_call lane_call_;  // what the borrower of the direct lane has sent
  std::string lane_field_;
  std::string lane_to_field_;
  words command_;
  std::string fields_;  // of a call's renewals, one after the other
  std::vector<std::size_t> field_ends_;
};

}  // namespace latchkey::detail
