#pragma once

#include <machine/any_node.hpp>
#include <machine/cluster_scout.hpp>
#include <machine/context.hpp>
#include <machine/guide.hpp>
#include <machine/plain_calls.hpp>
#include <machine/sentinel_scout.hpp>
#include <machine/shard.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace latchkey::detail {

class name_machine;

// Told by the fleet what concerns many names at once.
class fleet_user {
 public:
  // Of the names there.
  virtual void trouble(home const& at, error_code const& why, std::string_view text, bool transient) = 0;
  virtual bool needs_server() const = 0;  // somebody waits, holds, or has something to say
  // Another server has these names from now on, and perhaps not all that the one before had.
  virtual void moved(home& at) = 0;
  // Every name goes where this says.
  virtual void move_names(std::function<home&(std::string_view)> const& where) = 0;
  virtual bool any_name_at(home const& at) const = 0;

 protected:
  ~fleet_user() = default;
};

// The servers of a client. One server of a fixed address, or the master that sentinels name, has all names: one shard.
// Of a cluster each master has some: a shard each. What is done when names move: docs/topologies.md.
class fleet final : private shard_user, private guided {
 public:
  struct topology {
    connections::identity as;  // of all servers; `address` is that of the only one, for texts
    sentinels whom{};          // without seeds there are none
    cluster_seeds cluster{};   // without nodes it is none
  };

  fleet(context& shared, topology given, plain_calls& plain, fleet_user& user);
  ~fleet();
  fleet(fleet const&) = delete;
  fleet& operator=(fleet const&) = delete;

  // Another server may have a name one day.
  bool may_change() const { return guide_ != nullptr; }
  // Of the server that has it.
  home& at(std::string_view name) { return guide_ ? guide_->of(name).names() : first().names(); }
  // Of any server that there is, one that serves before others.
  home& anywhere();

  // --- the engine ---
  void turn(io_actions& io);
  void opened(std::uint32_t serial);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text);
  void received(std::uint32_t serial, std::string_view bytes);
  void broken(std::uint32_t serial, error_code const& why);
  void on_link_timer(link& link);
  void on_scout_timer() { guide_->scout().on_timer(); }

  // --- direct lanes: one to each server whose names blocked callers ask for ---
  void want_direct(home const& at) { of(at).want_direct(); }
  // The next call there is by a blocked caller: who lends a lane to it; null: there is none, or it is lent.
  session* idle_lane(home const& at);
  // What goes by lanes alone asks for no turn: somebody who knows where the servers are has to be asked all the same.
  bool guide_asleep() const { return guide_ && guide_->scout().asleep(); }
  // Null: the lane with this number is not lent any more.
  session* lender_of(std::uint32_t serial);

  // --- plain calls ---
  void forget(operation& call);
  void collect(std::vector<operation*>& calls) const;

  // --- all that there is ---
  bool idle() const;  // nothing waits to be sent
  template <class Tell>
  void each_home(Tell const& tell) {
    for (auto const& shard : shards_) tell(shard->names());
  }
  void hurry();  // see connections
  // No server can be reached at all.
  void tell_all(error_code const& why, std::string_view text, bool transient);
  void snapshot(std::vector<node_stats>& out) const;
  bool quiet() const;
  bool settled() const;  // see session

 private:
  shard& first() { return *shards_.front(); }
  // Whatever is told makes new shards, perhaps: they stand at the end, and have not to hear of it.
  template <class Tell>
  void each_session(Tell const& tell) {
    for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i]->each(tell);
  }
  shard& of(home const& names);
  bool one_for_all() const { return !guide_ || guide_->one_for_all(); }
  void collect_debts();
  void let_go_of_empty_shards();
  // What stands there because of an ASK goes back to where its name is. By whose requests it was.
  std::vector<name_machine*> send_back(home& from);

  // Of the shards.
  void trouble(shard& of, error_code const& why, std::string_view text, bool transient) override;
  void shaken() override;
  void misled(shard& by) override;
  home* redirected(shard& by, redirection const& to) override;
  bool needs_server(shard const& of) const override;
  void moved(home& at) override;  // the guide says so, too

  // Of the guide.
  std::vector<std::unique_ptr<shard>> const& shards() const override { return shards_; }
  shard& make_shard() override;
  void move_names() override;
  void given_up(shard& shard) override;
  bool needs_any_server() const override { return user_.needs_server(); }

  context& shared_;
  fleet_user& user_;
  plain_calls& plain_;
  connections::identity const as_;
  std::vector<std::unique_ptr<shard>> shards_;  // never empty
  std::unique_ptr<guide> guide_;                // null: nothing ever changes
  any_node any_node_;
};

}  // namespace latchkey::detail
