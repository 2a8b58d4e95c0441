#pragma once

#include <machine/home.hpp>
#include <machine/plain_calls.hpp>
#include <machine/session.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// The server that has some of the names, or all: a session with it, and with those that had them before it, as long as
// something that was sent there may still run. What is done when another one takes over: docs/topologies.md.
class shard final {
 public:
  shard(context& shared, connections::identity as, plain_calls& plain, shard_user& user, bool in_cluster);
  ~shard();
  shard(shard const&) = delete;
  shard& operator=(shard const&) = delete;

  home& names() { return names_; }
  home const& names() const { return names_; }
  // Null: nobody has said yet where its names are.
  session* now() { return now_.get(); }
  session const* now() const { return now_.get(); }
  bool leads_to(node_address const& at) const { return now_ && now_->where() == at; }
  bool up() const { return now_ && now_->up(); }
  // And runs what it is asked for.
  bool serves() const { return now_ && now_->serves(); }
  // It was tried last, and does not.
  bool in_vain() const;
  // Its server is not connected, and has to be, or its successor: something is asked of it, or what was released there
  // lately may come back elsewhere.
  bool missed() const;

  // One server of a fixed address, for ever.
  void begin() { now_ = made({}); }
  // What was sent to the server before is never believed: it goes again, to the new one. docs/topologies.md says why
  // that need not wait for what still runs there.
  void lead_to(node_address const& at);
  // Whether anybody can be asked who takes over if its server is gone.
  void expect_successor(bool may_be) { names_.to_be_succeeded = may_be && now_; }
  // Nobody says where its names are: that is why, unless its last server has refused itself.
  void hinder(std::string_view text, error_code const& why, bool transient);
  // It has no names any more, and is not asked again.
  void retire();
  // What it owes to the server to which this one leads passes to it.
  void pass_debts(session& to);
  bool owes() const { return !before_.empty(); }
  // Nothing of it is left.
  bool gone() const { return !now_ && before_.empty() && names_.requests.empty(); }

  // --- the engine ---
  void turn(io_actions& io);
  // The one that leads comes first. What it hears may make it one of the others.
  template <class Tell>
  void each(Tell const& tell) {
    if (now_) tell(*now_);
    for (auto const& session : before_) tell(*session);
  }

  // --- the direct lane ---
  void want_direct();
  bool direct_idle() const {
    return now_ && now_->direct_idle() && shared_.now >= names_.quarantined_until && shared_.barred.empty();
  }
  bool lent(std::uint32_t serial) const { return now_ && now_->lent(serial); }

  // --- plain calls ---
  void collect(std::vector<operation*>& calls);

  // A row for each server that has or had the names and is asked something yet. `epoch`: of the one that has them.
  void snapshot(std::vector<node_stats>& out, std::uint64_t epoch) const;
  bool quiet() const { return now_ ? now_->quiet() : names_.requests.empty(); }
  bool settled() const { return !now_ || now_->settled(); }  // see session

 private:
  std::unique_ptr<session> made(node_address const& at);

  context& shared_;
  connections::identity const as_;
  plain_calls& plain_;
  shard_user& user_;
  home names_;
  std::unique_ptr<session> now_;
  std::vector<std::unique_ptr<session>> before_;  // of servers that had the names
  bool direct_wanted_ = false;
};

}  // namespace latchkey::detail
