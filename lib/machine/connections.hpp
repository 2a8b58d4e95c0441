#pragma once

#include <machine/context.hpp>
#include <machine/hindrance.hpp>
#include <machine/link.hpp>
#include <wire/node_address.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Told what becomes of the connections, and what their handshake learns of the server.
class connections_user {
 public:
  virtual void on_up(link& connection) = 0;
  virtual void on_down(link const& connection, remains&& left, error_code const& why, std::string_view text) = 0;
  virtual void on_trouble(error_code const& why, std::string_view text, bool transient) = 0;
  virtual void misled() = 0;                                      // the server says that it is one, or has become one
  virtual void on_replicas(std::size_t many, instant asked) = 0;  // so many follow it, which is the master
  virtual void on_kill_allowed() = 0;
  virtual void on_kill_refused(std::string_view text) = 0;
  virtual void on_unknown(script const& text) = 0;

 protected:
  ~connections_user() = default;
};

// The connections of a client to one server: when they are opened, their handshake, which of them are given up and
// when. The shared connection leads; the direct lane and the message connection go to its peer, are checked against it,
// and end with it. Knows calls by their order only: what is asked, and what an answer means, is known to others.
// Bodies: connections.cpp, handshake.cpp.
class connections {
 public:
  struct identity {
    std::string username;
    std::string password;
    int database = 0;
    std::string address;  // of the server, for texts
    node_address at{};    // the same, to connect to
    bool in_cluster = false;

    // Of a server behind its address.
    std::string says(std::string_view text) const;
  };
  // Which of them somebody wants.
  struct needs {
    bool server;
    bool direct;
    bool messages;
  };

  // `away`: why the shared one is not there. `timer` makes the session take a turn.
  connections(context& shared, hindrance& away, identity who, connections_user& user, timer_node& timer);
  ~connections();
  connections(connections const&) = delete;
  connections& operator=(connections const&) = delete;

  link& of(role which) { return links_[static_cast<std::size_t>(which)]; }
  link const& of(role which) const { return links_[static_cast<std::size_t>(which)]; }
  // Of the process that the shared connection leads to, as far as it says.
  struct facts {
    std::string run_id;
    bool knows_libraries = false;  // CLIENT SETINFO
    bool shards_channels = false;  // SSUBSCRIBE
  };
  facts const& server() const { return server_; }
  identity const& who() const { return who_; }
  bool has(link const& connection) const {
    return &connection >= links_.data() && &connection < links_.data() + links_.size();
  }
  // Is it there, or will it not be soon?
  bool decided(role which) const;

  // --- the engine ---
  void open_needed(needs const& wanted, io_actions& io);
  void flush(io_actions& io);
  void opened(std::uint32_t serial);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text);
  void broken(std::uint32_t serial, error_code const& why);
  void on_timer(link& connection);

  // --- answers ---
  // Null: of a connection that was given up.
  link* feed(std::uint32_t serial, std::string_view bytes);
  bool next(link& connection, reply& answer);
  // The call that this answers; none if it concerns this connection alone.
  std::optional<sent_call> answered(link& connection, reply const& answer);

  void discard(link& connection, error_code const& why, std::string_view text = {});

  // --- another server has taken over ---
  // All of them, and nothing that has not left yet arrives there. From now on what becomes of the shared one concerns
  // nobody else.
  void abandon();
  // As in the beginning.
  void lead();
  // Nothing more is to be said there for now. Nothing is wrong, and what is opened next replaces nothing.
  void end();

  // What is needed is opened now, without the pause after a failure.
  void hurry();

  // Is the server what it was, and how many follow it?
  void ask_role();

  // --- the direct lane ---
  bool lane_idle() const;
  bool lent(std::uint32_t serial) const;

  // --- plain calls ---
  void forget(operation& plain);
  void collect(std::vector<operation*>& plain) const;
  // No owner and no caller awaits an answer.
  bool idle() const;
  // Nobody awaits any answer, and none is being made.
  bool settled() const;

 private:
  link* find(std::uint32_t serial);
  void open(link& connection, io_actions& io);
  void ready(link& connection);
  void failed(link& connection, error_code const& why, std::string_view text, bool transient);
  void plan_reconnect(link& connection, bool was_up);
  void ping(link& connection);
  bool look_again(link& connection, instant since, milliseconds limit);

  // handshake.cpp
  void greet(link& connection);
  void on_hello(link& connection, sent_call const& call, reply const& answer);
  void greeted(link& connection);
  void on_check(sent_call const& call, reply const& answer);
  void on_role(link& connection, reply const& answer, instant asked);
  void ask_for_scripts(link& connection);
  void learn_scripts(reply const& answer);

  context& shared_;
  hindrance& away_;
  identity const who_;
  connections_user& user_;
  timer_node& timer_;
  std::array<link, 3> links_{link(role::shared), link(role::direct), link(role::messages)};
  bool aside_ = false;
  std::vector<std::uint32_t> closing_;    // serials that the engine is to close
  std::vector<std::uint32_t> aborting_;   // the same, and what has not left yet never does
  std::vector<std::uint32_t> lending_;    // serials that callers may borrow from now on
  std::vector<script const*> asked_for_;  // scripts that the handshake asks for
  facts server_;
  bool check_refused_ = false;
  bool asking_refused_ = false;
  words command_;
};

}  // namespace latchkey::detail
