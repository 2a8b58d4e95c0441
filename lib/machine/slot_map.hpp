#pragma once

#include <wire/cluster.hpp>
#include <wire/node_address.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::detail {

// Which node of a cluster has which slots, by what others claim. A claim takes a slot from another node only with a
// greater epoch: what a stale witness says does not lead back. Knows no time.
class slot_map {
 public:
  using range = std::pair<std::uint16_t, std::uint16_t>;  // from and to, inclusive

  // Slots that have another node from now on.
  struct change {
    node_address from{};  // without a host: nobody had them
    node_address to{};
    std::uint64_t epoch = 0;
    std::vector<range> slots{};
  };

  // Who has claimed slots.
  struct claimant {
    std::string id;  // empty: it was named by another one, which does not know it
    node_address at{};
    std::uint64_t epoch = 0;

    friend bool operator==(claimant const&, claimant const&) = default;
  };
  // ... and slots of its that another one claims in vain.
  struct standing {
    claimant of;
    std::vector<range> slots{};
  };

  slot_map() : of_(slot_count, nobody) {}

  // Null: nobody has claimed it.
  node_address const* at(std::uint16_t slot) const;
  std::size_t slots_of(node_address const& at) const;
  std::uint64_t epoch_of(node_address const& at) const;
  std::vector<range> uncovered() const;  // what nobody has claimed

  // Adds to `changes`. False: every slot of it has been claimed with a greater epoch. The same node at another address
  // is another one.
  bool claim(std::string const& id, node_address const& at, std::uint64_t epoch, std::span<range const> slots,
             std::vector<change>& changes);
  // What the epoch of such a claim says of the slots that this node had and has. One that takes slots from another node
  // has a greater epoch for that alone.
  enum class rise : unsigned char {
    none,
    perhaps,  // it may have been elected again meanwhile
    elected,  // it was: others had them, and perhaps not all of what was done
  };
  rise risen(std::string const& id, node_address const& at, std::uint64_t epoch, std::span<range const> slots) const;
  // Where this node was, if it has slots and is elsewhere now, by a claim with this epoch; null: it is not.
  node_address const* left_by(std::string const& id, node_address const& at, std::uint64_t epoch) const;
  // Whose epochs such a claim does not exceed.
  std::vector<standing> standing_against(std::string const& id, node_address const& at, std::uint64_t epoch,
                                         std::span<range const> slots) const;
  // Its slots lead there as before, until any claim takes them.
  void give_up(claimant const& whom);
  // It has the slots that it had.
  change readdress(node_address const& from, node_address const& to);
  // The node that had it says so itself; until somebody claims it with a greater epoch, which is a change then: perhaps
  // it was an election. Back to the node that has claimed it last it goes as if nothing had been said.
  // True: the node that says so has it by such a word alone.
  bool moved(std::uint16_t slot, node_address const& to);

 private:
  struct owner : claimant {
    bool given_up = false;
    std::size_t slots = 0;
    bool is(claimant const& one) const { return !given_up && *this == one; }
    bool stands_against(node_address const& by, std::uint64_t claimed) const;
  };
  static constexpr std::uint16_t nobody = 0xFFFF;

  std::uint16_t index_of(owner const& one);
  owner const* claimant_of(std::uint16_t slot) const;
  bool claim(std::string const& id, node_address const& at, std::uint64_t epoch, range const& run,
             std::vector<change>& made);
  // The last one up to `last` that has the same owner as the first.
  std::uint16_t end_of_run(std::uint16_t first, std::uint16_t last) const;
  void give(std::uint16_t slot, std::uint16_t to);

  std::vector<owner> owners_;
  std::vector<std::uint16_t> of_;           // of each slot, where its owner stands
  std::map<std::uint16_t, owner> claimed_;  // by whom slots were claimed that are elsewhere by the word of another node
};

}  // namespace latchkey::detail
