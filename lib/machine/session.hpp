#pragma once

#include <machine/context.hpp>
#include <machine/link.hpp>
#include <machine/orphans.hpp>
#include <wire/server_error.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace latchkey::detail {

// What the server refuses for the time being, by the first of its words: everything (LOADING, BUSY), or what takes
// memory or changes data (OOM, READONLY), of which only a grant shows that it is over.
struct sickness {
  enum part : unsigned char { all, writes, parts };
  std::array<std::string, parts> of;
};

// Told by the session what concerns all names at once.
class session_user {
 public:
  virtual void trouble(error_code const& why, std::string_view text, bool transient) = 0;
  // A force-unlock, sent at that time, has removed whoever had the name.
  virtual void forced(operation const& call, instant sent) = 0;
  virtual bool needs_server() const = 0;                   // somebody waits, holds, or has something to say
  virtual std::span<kind const* const> kinds() const = 0;  // of all names so far

 protected:
  ~session_user() = default;
};

// The connections of a client to one server: opening, handshake, what was sent and not yet answered, and discarding.
// The shared connection leads; the direct lane and the message connection go to its peer, are checked against it, and
// end with it. Bodies: session.cpp (opening and ending), handshake.cpp, connecting.cpp (what a connect awaits),
// dispatch.cpp (answers), sending.cpp (what leaves at the end of a turn).
class session final : private orphans_user {
 public:
  struct identity {
    std::string username;
    std::string password;
    int database = 0;
    std::string address;  // of the server, for texts
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
  void lend_to(owner_state& one);
  void lend_to(operation& plain);
  std::string& lane_bytes() { return lane_out_; }
  std::uint32_t lane_serial() const { return link_of(role::direct).serial; }
  bool lent(std::uint32_t serial) const;
  bool lane_answer(reply const& answer);  // true: lane_bytes() are to be sent again
  void lane_failed(std::uint32_t serial, error_code const& why);

  // --- plain calls ---
  void connect_begins();
  void expire_plain(operation& call, error_code const& why) override;
  void expire_plain(operation& call);  // by its deadline
  // After trouble that passes. False: its attempts are used up.
  bool goes_on(operation& plain, error_code const& why, std::string_view text) const;
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
  std::string at_address(std::string_view text) const;
  void failed(link& one, error_code const& why, std::string_view text, bool transient);
  void discard(link& one, error_code const& why, std::string_view text = {});
  void plan_reconnect(link& one, bool was_up);
  void plan(link& one);
  void ping(link& one);
  bool look_again(link& one, instant since, milliseconds limit);
  void pause(unsigned n);

  // handshake.cpp
  void greet(link& one);
  void on_hello(link& one, sent_call const& call, reply const& answer);
  void greeted(link& one);
  void on_check(sent_call const& call, reply const& answer);
  void ask_for_scripts(link& one);
  void learn_scripts(reply const& answer);

  // dispatch.cpp
  void on_reply(link& one, reply& answer);
  void on_message_reply(link& one, reply& answer);
  void on_script(sent_call& call, reply const& answer);
  void on_plain(sent_call& call, reply const& answer);
  void send_again(sent_call& call);
  void fell_ill(sickness::part what, server_error const& why, std::string_view text);
  void recovered(sickness::part what);
  void nothing_ran(sent_call& call, server_error const& why, std::string_view text);
  void unanswered(sent_call& call, orphan& from, error_code const& why, std::string_view text);
  void kill(orphan const& gone) override;

  // sending.cpp
  void send_requests();
  void send_groups(unsigned order);
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

  // connecting.cpp
  bool decided(link const& one) const;
  void end_connects();
  void restart_connects();
  void ask_to_subscribe(link& one);
  void on_may_subscribe(std::string_view refused);

  context& shared_;
  identity const who_;
  session_user& user_;
  std::array<link, 3> links_{link(role::shared), link(role::direct), link(role::messages)};
  std::uint32_t next_serial_ = 1;
  std::vector<std::uint32_t> closing_;         // serials that the engine is to close
  std::vector<std::uint32_t> lending_;         // serials that callers may borrow from now on
  std::unordered_set<script const*> unknown_;  // scripts whose text goes next time
  std::vector<script const*> asked_for_;       // scripts that the handshake asks for
  bool check_refused_ = false;
  bool direct_wanted_ = false;
  bool subscribe_asked_ = false;              // may_subscribe is not answered yet
  unsigned connects_ = 0;                     // calls of connect that are not completed
  boost::intrusive::list<operation> waking_;  // those that the server has answered: other links are awaited
  bool reconnect_ = false;                    // the server is the wrong one: discard after this answer
  sickness sick_;
  unsigned pauses_ = 0;
  instant paused_until_{};  // the server runs nothing at the moment
  timer_node timer_;
  orphans orphans_{shared_, *this, timer_};
  std::string lane_out_;
  sent_call lane_call_;  // what the borrower of the direct lane has sent
  std::string lane_field_;
  std::string lane_to_field_;
  words command_;
  std::string fields_;  // of a call's renewals, one after the other
  std::vector<std::size_t> field_ends_;
};

}  // namespace latchkey::detail
