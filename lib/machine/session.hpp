#pragma once

#include <machine/connections.hpp>
#include <machine/context.hpp>
#include <machine/home.hpp>
#include <machine/message_lane.hpp>
#include <machine/orphans.hpp>
#include <machine/plain_calls.hpp>
#include <machine/request_writer.hpp>

#include <string>
#include <string_view>

namespace latchkey::detail {

class shard;

// Told by the shards, and by the session of each that leads.
class shard_user {
 public:
  virtual void trouble(shard& of, error_code const& why, std::string_view text, bool transient) = 0;
  // Its server does not answer, or turns requests away: perhaps another one has the names.
  virtual void shaken() = 0;
  // Its server says that it has them not.
  virtual void misled(shard& by) = 0;
  // A name is elsewhere in the cluster: where its requests go instead; null: nobody knows yet.
  virtual home* redirected(shard& by, redirection const& to) = 0;
  virtual bool needs_server(shard const& of) const = 0;  // somebody waits, holds, or has something to say
  // Another server has the names from now on, and perhaps not all that the one before had.
  virtual void moved(home& at) = 0;

 protected:
  ~shard_user() = default;
};

// What a client has to do with one server: brings the connections to it, what they left behind, who writes requests,
// what is said on the message connection and the plain calls together, none of which knows another. It leads until
// another server has the names; from then on it is aside, and only sees to what it left behind.
class session final : private connections_user, private orphans_user, private writer_user {
 public:
  session(context& shared, home& at, connections::identity who, shard& of, shard_user& user, plain_calls& plain);
  ~session();
  session(session const&) = delete;
  session& operator=(session const&) = delete;

  // --- the engine ---
  void turn(io_actions& io);
  connections& links() { return links_; }
  node_address const& where() const { return links_.who().at; }
  void received(std::uint32_t serial, std::string_view bytes);

  // --- the direct lane ---
  void want_direct();
  bool direct_idle() const;
  template <class Requests>
  void lend_to(Requests& requests) {
    wanted_ = shared_.now;  // they stand in no outbox
    writer_.lend(links_.of(role::direct), requests);
  }
  std::string& lane_bytes() { return writer_.lane_bytes(); }
  std::uint32_t lane_serial() const { return links_.of(role::direct).serial; }
  bool lent(std::uint32_t serial) const { return links_.lent(serial); }
  bool lane_answer(reply const& answer);  // true: lane_bytes() are to be sent again
  void lane_failed(error_code const& why) { links_.discard(links_.of(role::direct), why); }

  // --- plain calls ---
  void forget(operation& call);
  void collect(std::vector<operation*>& calls) const;

  // --- the end of its lead ---
  // Somebody wants to reach its server.
  bool needed() const { return user_.needs_server(of_) || orphans_.any_in_doubt() || !orphans_.empty(); }
  bool up() const { return links_.of(role::shared).at == link::state::up; }
  bool serves() const { return up() && !writer_.paused(); }
  // What was sent on it goes again elsewhere, at once; its connections end before anything more arrives there.
  void retire();
  // It leads again.
  void lead();
  // A turn while it is aside, at most so long.
  void turn_aside(io_actions& io, milliseconds most);
  // What the other one, which is aside, left behind at this server, to which its address or another one leads: before
  // anything more is asked of it.
  void take_debts(session& aside);
  // What it left behind is no more asked for.
  void forgive();
  // Nothing is left to be said to its server.
  bool paid() const { return orphans_.empty() && links_.of(role::shared).at == link::state::down; }

  node_stats seen() const;
  bool quiet() const;
  // Nor is any other answer awaited, nor a connection being made; or before that a pause has to end.
  bool settled() const;

 private:
  void close_if_idle();
  void see_to_bars();
  void on_reply(link& connection, reply& answer);
  void end_connects();

  void on_up(link& connection) override;
  void on_down(link const& connection, remains&& left, error_code const& why, std::string_view text) override;
  void on_trouble(error_code const& why, std::string_view text, bool transient) override;
  void on_replicas(std::size_t many, instant asked) override;
  void on_kill_allowed() override { orphans_.allow(); }
  void on_kill_refused(std::string_view text) override { orphans_.refuse(text); }
  void on_unknown(script const& text) override { writer_.miss(text); }
  void kill(orphan const& gone) override;
  home* redirected(redirection const& to) override { return user_.redirected(of_, to); }
  void shaken() override { user_.shaken(); }
  void misled() override {
    if (!aside_) user_.misled(of_);
  }

  context& shared_;
  home& at_;
  shard& of_;
  shard_user& user_;
  timer_node timer_;
  connections links_;
  plain_calls& plain_;
  orphans orphans_{shared_, *this, plain_, timer_};
  request_writer writer_;
  message_lane messages_{shared_, at_, links_, *this};
  bool aside_ = false;
  instant aside_since_{};
  instant wanted_{};  // when somebody wanted something of its server last
  bool direct_wanted_ = false;
  words command_;
};

}  // namespace latchkey::detail
