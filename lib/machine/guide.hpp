#pragma once

#include <machine/actions.hpp>
#include <machine/scout_rounds.hpp>
#include <machine/shard.hpp>
#include <wire/cluster.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// The shards of a client, as a guide sees them.
class guided {
 public:
  virtual std::vector<std::unique_ptr<shard>> const& shards() const = 0;
  virtual shard& make_shard() = 0;
  // Every name goes to the shard that the guide says.
  virtual void move_names() = 0;
  // Its server is the same, and has perhaps lost something.
  virtual void moved(home& at) = 0;
  // Names that went elsewhere before this one was given up may have left something.
  virtual void given_up(shard& shard) = 0;
  virtual void trouble(shard& of, error_code const& why, std::string_view text, bool transient) = 0;
  virtual bool needs_any_server() const = 0;

 protected:
  ~guided() = default;
};

// Knows which server has a name, asks others for it, and makes shards lead there. Without one there is one server of a
// fixed address.
class guide {
 public:
  virtual ~guide() = default;

  virtual shard& of(std::string_view name) = 0;
  // Of the mastership of this server; zero: nobody has said.
  virtual std::uint64_t epoch_of(node_address const& at) const = 0;
  // One server has all names, of which each may be anywhere else.
  virtual bool one_for_all() const = 0;

  virtual void turn(io_actions& io) = 0;
  // Who asks. Its `hurry`: a server does not answer, or turns requests away: perhaps another one has its names.
  virtual scout_rounds& scout() = 0;

  // --- what servers say ---
  // One says that it has them not.
  virtual void misled(shard& by) = 0;
  // One says that another one has a name: see shard_user.
  virtual home* redirected(shard& by, redirection const& to) = 0;
};

// Under which address a server can be reached that the others know by this one.
node_address reached_by(context const& shared, node_address const& at);

// Another server has names, or the same one after an election; `first`: nobody had them before.
void note_switch(context& shared, bool first, std::string_view text);

// Something was released that comes back if nobody hears of a failover.
bool releases_at_stake(context const& shared);
// Whoever was asked then knows of no other master there.
void confirm_releases(context& shared, home const& at, instant asked);

// For `failover_quarantine`. Of a failover that was before its time a client can only know that there was one.
void quarantine(context& shared, home& at);

}  // namespace latchkey::detail
