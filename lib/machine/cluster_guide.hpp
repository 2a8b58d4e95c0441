#pragma once

#include <machine/cluster_scout.hpp>
#include <machine/guide.hpp>
#include <machine/slot_map.hpp>

#include <map>
#include <string>
#include <vector>

namespace latchkey::detail {

// The nodes of a cluster know who has which slots: a shard for each master, and the first for names of slots that
// nobody has.
class cluster_guide final : public guide, private cluster_user {
 public:
  cluster_guide(context& shared, cluster_seeds whom, guided& servers);

  shard& of(std::string_view name) override;
  std::uint64_t epoch_of(node_address const& at) const override { return slots_.epoch_of(at); }
  bool one_for_all() const override { return false; }
  void turn(io_actions& io) override { scout_.turn(io, need()); }
  scout_rounds& scout() override { return scout_; }
  void misled(shard& by) override;
  home* redirected(shard& by, redirection const& to) override;

 private:
  // Of a master, by an answer.
  struct place {
    node_address at;
    bool same = false;  // its epoch is the one that was known
  };

  // Of an owner whom whoever claims its slots does not name.
  struct doubt {
    slot_map::claimant of;
    instant since{};
    unsigned answers = 0;  // in a row that did so
  };

  shard* leading_to(node_address const& at) const;
  cluster_scout::need need() const;
  node_address place_of(cluster_member const& node, node_address const& by) const;
  bool seen_whole(std::vector<cluster_master> const& masters) const;
  bool is_gone(slot_map::claimant const& one, cluster_view const& seen, node_address const& by) const;
  void give_up_gone(cluster_view const& seen, node_address const& by);
  void note_changes(std::vector<slot_map::change> const& changes);
  // The first of all is told.
  void note_redirected(redirection const& to, node_address const& at);
  void note_uncovered();
  void follow(std::vector<slot_map::change> const& changes);
  void lead_again(node_address const& at);
  void look_again();
  void confirm(std::vector<cluster_master> const& masters, std::vector<place> const& places, instant asked);
  void give_up_replaced(std::vector<node_address> const& masters);

  error_code on_cluster(node_address const& by, cluster_view const& seen, instant asked) override;
  void on_no_cluster(error_code const& why, std::string_view text, bool transient) override;

  context& shared_;
  guided& servers_;
  bool const by_name_;
  slot_map slots_;
  std::map<std::string, node_address> named_;  // nodes by all that redirections may say
  std::vector<slot_map::range> uncovered_;     // as was told
  std::vector<doubt> doubts_;                  // each of them was told
  instant roles_due_{};                        // when servers are asked for theirs again
  cluster_scout scout_;
};

}  // namespace latchkey::detail
