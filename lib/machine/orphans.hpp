#pragma once

#include <codec/reply.hpp>
#include <machine/context.hpp>
#include <machine/link.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// A connection that was given up while requests on it were unanswered: its bytes may still run on the server.
struct orphan {
  std::string id;
  std::string address;
  std::string run_id;  // of the server's process; empty: it does not say
  std::uint32_t serial = 0;
  bool asked = false;                 // its KILL is under way
  bool answered = false;              // too late, which has been said
  std::vector<std::string> owners{};  // whose requests were unanswered
  std::vector<std::string> barred{};  // the same, once another server has their names
  std::vector<operation*> forced{};   // force-unlocks: told only after the KILL's answer
};

// Sends the KILLs.
class orphans_user {
 public:
  virtual void kill(orphan const& gone) = 0;

 protected:
  ~orphans_user() = default;
};

// The orphans of one server, and the requests in doubt. Those wait until nothing of any orphan can run any more: its
// KILL was answered, the server has ended, or it refuses KILL, which an event says. docs/safety.md, section 5.
class orphans {
 public:
  // `timer` makes the session take a turn.
  orphans(context& shared, orphans_user& user, plain_listener& plain, timer_node& timer)
      : shared_(shared), user_(user), plain_(plain), timer_(timer) {}

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  bool any_in_doubt() const { return !in_doubt_.empty(); }
  // What waits for them is resolved all the same: it goes to another server. docs/topologies.md says why it may.
  void let_go(home const& at);
  // Until they are gone nothing new begins elsewhere for whom they may concern.
  void bar();
  bool barring() const;
  // That has taken too long, which is told with this address; empty: there is nothing to wait for.
  void unbar(std::string_view address);
  // They are no more asked for: nothing of them can run, or nothing can be done about it.
  void forgive();
  // From now on they are asked for here: those of `from` that this process has, or all; those of another one, if it is
  // up, have ended with that.
  void take(orphans& from, bool all, std::string_view id, std::string_view run_id);
  // Its calls are told. Whether it is an orphan depends on what they were.
  void give_up(remains&& left, error_code const& why, std::string_view text);
  // It was on its way already. True: the first of this connection.
  bool answered_late(std::uint32_t serial);

  // --- the shared connection ---
  // It is up, leads to this process, and is this client of it.
  void connected(std::string_view id, std::string_view run_id);
  void disconnected();
  void refuse(std::string_view text);
  void allow();
  void send();
  void answered(std::uint32_t serial, reply const& answer);

  // --- force-unlocks ---
  void forget(operation& call);
  std::vector<operation*> forced() const;

 private:
  void add(orphan&& gone);
  void unanswered(sent_call& call, orphan& from, error_code const& why, std::string_view text);
  static bool outlived(orphan const& gone, std::string_view id, std::string_view run_id);
  void forget_outlived(std::string_view id, std::string_view run_id);
  void killed(orphan& gone);
  void unbar(orphan& gone);
  void not_killed(orphan& gone, reply const& answer);
  void resolve();

  context& shared_;
  orphans_user& user_;
  plain_listener& plain_;
  timer_node& timer_;
  std::vector<orphan> all_;
  std::vector<owner_state*> in_doubt_;
  bool refused_ = false;
  unsigned failures_ = 0;
  instant again_at_{};
};

}  // namespace latchkey::detail
