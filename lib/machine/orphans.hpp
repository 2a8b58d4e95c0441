#pragma once

#include <codec/reply.hpp>
#include <machine/context.hpp>

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
  bool asked = false;              // its KILL is under way
  std::vector<operation*> forced;  // force-unlocks: told only after the KILL's answer
};

// What the session does for its orphans.
class orphans_user {
 public:
  virtual void kill(orphan const& gone) = 0;
  virtual void expire_plain(operation& call, error_code const& why) = 0;

 protected:
  ~orphans_user() = default;
};

// The orphans of a session, and the requests in doubt. Those wait until nothing of any orphan can run any more: its
// KILL was answered, the server has ended, or it refuses KILL, which an event says. docs/safety.md, section 5.
class orphans {
 public:
  // `timer` makes the session take a turn.
  orphans(context& shared, orphans_user& user, timer_node& timer) : shared_(shared), user_(user), timer_(timer) {}

  bool empty() const { return all_.empty(); }
  bool any_in_doubt() const { return !in_doubt_.empty(); }
  void add(orphan&& gone);
  // Its request was unanswered: it is told when that can be resolved.
  void waits(owner_state& one) { in_doubt_.push_back(&one); }

  // --- the shared connection ---
  void greets() { run_id_.clear(); }
  void leads_to(std::string_view run_id) { run_id_ = run_id; }
  std::string const& run_id() const { return run_id_; }
  void connected(std::string_view id);
  void disconnected();
  void refuse(std::string_view text);
  void allow();
  void send();
  void answered(std::uint32_t serial, reply const& answer);

  // --- force-unlocks ---
  void forget(operation& call);
  std::vector<operation*> forced() const;

 private:
  bool outlived(orphan const& gone, std::string_view id) const;
  void forget_outlived(std::string_view id);
  void killed(orphan const& gone);
  void not_killed(orphan& gone, reply const& answer);
  void resolve();

  context& shared_;
  orphans_user& user_;
  timer_node& timer_;
  std::string run_id_;  // of the process that the shared connection leads to
  std::vector<orphan> all_;
  std::vector<owner_state*> in_doubt_;
  bool refused_ = false;
  unsigned failures_ = 0;
  instant again_at_{};
};

}  // namespace latchkey::detail
