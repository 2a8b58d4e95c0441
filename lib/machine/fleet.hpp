#pragma once

#include <machine/context.hpp>
#include <machine/plain_calls.hpp>
#include <machine/routes.hpp>
#include <machine/sentinel_scout.hpp>
#include <machine/session.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Told by the fleet what concerns all names at once.
class fleet_user {
 public:
  virtual void trouble(error_code const& why, std::string_view text, bool transient) = 0;
  // A force-unlock, sent at that time, has removed whoever had the name.
  virtual void forced(operation const& call, instant sent) = 0;
  virtual void forces(operation const& call) = 0;  // it leaves now
  virtual std::uint64_t shown_as(operation const& call) const = 0;
  virtual void correct(operation& query) const = 0;
  virtual bool needs_server() const = 0;  // somebody waits, holds, or has something to say
  // By which names so far are acquired and released; none twice.
  virtual std::span<script const* const> scripts() const = 0;
  // Another server has the names from now on, and perhaps not all that the one before had.
  virtual void moved() = 0;

 protected:
  ~fleet_user() = default;
};

// The servers of a client: a session with the one that has its names, and with those that had them as long as
// something that was sent there may still run. One server of a fixed address is a fleet that never changes. What is
// done when the names move: docs/topologies.md.
class fleet final : private session_user, private plain_calls_user, private scout_user {
 public:
  struct topology {
    connections::identity as;  // of all servers; `address` is that of the only one, for texts
    sentinels whom{};          // without seeds there is one server, of a fixed address
  };

  fleet(context& shared, topology given, fleet_user& user);
  ~fleet();
  fleet(fleet const&) = delete;
  fleet& operator=(fleet const&) = delete;

  // Another server may have the names one day.
  bool may_change() const { return scout_ != nullptr; }

  // --- the engine ---
  void turn(io_actions& io);
  void opened(std::uint32_t serial);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text);
  void received(std::uint32_t serial, std::string_view bytes);
  void broken(std::uint32_t serial, error_code const& why);
  void on_link_timer(link& one);
  void on_session_timer() { shared_.out->turn = true; }
  void on_scout_timer() { scout_->on_timer(); }

  // --- the direct lane ---
  void want_direct();
  bool direct_idle() const { return now_ && now_->direct_idle() && shared_.now >= shared_.quarantined_until; }
  void lend_to(owner_state& one) { now_->lend_to(one); }
  void lend_to(operation& plain) { now_->lend_to(plain); }
  std::string& lane_bytes() { return now_->lane_bytes(); }
  std::uint32_t lane_serial() const { return now_->lane_serial(); }
  bool lent(std::uint32_t serial) const { return now_ && now_->lent(serial); }
  bool lane_answer(reply const& answer) { return now_->lane_answer(answer); }
  void lane_failed(std::uint32_t serial, error_code const& why);

  // --- plain calls ---
  void connect_begins();
  plain_calls& plain() { return plain_; }
  void forget_plain_calls(error_code const& why);  // closing

  bool quiet() const;
  bool settled() const { return !now_ || now_->settled(); }  // see session

 private:
  std::unique_ptr<session> made(node_address const& at);
  void lead_to(node_address const& at);
  void quarantine();
  void pass_by_old_sessions(io_actions& io);
  sentinel_scout::need need() const;

  // Of the session that leads.
  void trouble(error_code const& why, std::string_view text, bool transient) override;
  void shaken() override;
  void misled() override;
  bool needs_server() const override { return user_.needs_server(); }
  std::span<script const* const> scripts() const override { return user_.scripts(); }

  void forced(operation const& call, instant sent) override { user_.forced(call, sent); }
  void forces(operation const& call) override { user_.forces(call); }
  std::uint64_t shown_as(operation const& call) const override { return user_.shown_as(call); }
  void correct(operation& query) const override { user_.correct(query); }
  void forget(operation& call) override;

  routes::verdict on_claim(node_address const& at, std::uint64_t epoch, std::size_t replicas) override;
  void on_no_claim(error_code const& why, std::string_view text, bool transient) override;
  node_address reached_by(node_address const& at) const override;

  context& shared_;
  fleet_user& user_;
  connections::identity const as_;
  plain_calls plain_{shared_, *this};
  routes routes_;
  std::unique_ptr<session> now_;                  // null: nobody has said yet where the names are
  std::vector<std::unique_ptr<session>> before_;  // of servers that had them
  std::unique_ptr<sentinel_scout> scout_;         // null: nothing ever changes
  bool direct_wanted_ = false;
};

}  // namespace latchkey::detail
