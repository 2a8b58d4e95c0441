#pragma once

#include <machine/hindrance.hpp>
#include <machine/outbox.hpp>
#include <machine/replica_count.hpp>
#include <machine/subscriptions.hpp>
#include <machine/watchdog.hpp>

#include <cstddef>
#include <functional>
#include <set>
#include <string>

namespace latchkey::detail {

struct context;

// What the names that one server has want of it, and what is known of it. A client has one, or, of a cluster, one for
// each server that has some of its names.
struct home {
  explicit home(context& shared, bool of_cluster = false)
      : in_cluster(of_cluster), requests(shared), channels(shared), renewals(shared, requests) {}

  bool const in_cluster;         // a call may ask about one slot only
  bool to_be_succeeded = false;  // its server is known, and so is somebody to ask who takes over
  bool unserved = false;         // others were asked, and no server has its names
  hindrance away;
  std::string refusal;            // with what its server turns requests away at the moment; empty: it answers them
  std::string address;            // of its server, for texts; empty: none is known
  bool sharded_channels = false;  // SSUBSCRIBE and SPUBLISH, as the server can
  outbox requests;
  subscriptions channels;
  watchdog renewals;
  std::size_t held = 0;  // live holds

  replica_count replicas;
  bool replicas_missed = false;  // there was none to confirm a grant, which was told

  // Of another server still, and sent on to this one because their keys are on their way (ASK): what was done here is
  // looked after here. Of too many all are meant.
  struct passers {
    static constexpr std::size_t most = 16'384;
    std::set<std::string, std::less<>> names;
    bool all = false;
    void add(std::string_view name) {
      if (names.size() < most)
        names.emplace(name);
      else
        all = true;
    }
    void remove(std::string_view name) {
      if (auto const found = names.find(name); found != names.end()) names.erase(found);
    }
    bool has(std::string_view name) const { return all || names.contains(name); }
  } passing;

  // The last answer of its server that it is a master, which all replicas follow: when it was asked, and answered. What
  // it did long before cannot be lost any more if whoever is asked afterwards knows of no other master.
  struct {
    instant asked{};
    instant at = never;
  } was_master;
  // It may have been elected again, which is not looked after yet; and when that was done last.
  bool in_question = false;
  instant looked_after{};

  // Until then nobody begins to hold anything there.
  instant quarantined_until{};
  // What perhaps was never held there is not passed on to who would begin to.
  bool passes_on(request const& release, instant now) const {
    return (!release.give_back && !release.repeated) || now >= quarantined_until;
  }
};

}  // namespace latchkey::detail
