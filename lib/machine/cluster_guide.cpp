#include <machine/cluster_guide.hpp>

#include <algorithm>
#include <string>

namespace latchkey::detail {

namespace {

constexpr milliseconds between_looks{500};
constexpr milliseconds longest_ignorance{10'000};  // of a node that others know: longer than they take to pass it on
constexpr unsigned enough_answers = 3;

std::string in_words(std::vector<slot_map::range> const& slots) {
  std::string text = "slots";
  for (auto const& [first, last] : slots) {
    text += ' ' + std::to_string(first);
    if (last != first) text += '-' + std::to_string(last);
  }
  return text;
}

}  // namespace

cluster_guide::cluster_guide(context& shared, cluster_seeds whom, guided& servers)
    : shared_(shared),
      servers_(servers),
      by_name_(whom.by_name),
      scout_(shared, std::move(whom), static_cast<cluster_user&>(*this)) {}

shard* cluster_guide::leading_to(node_address const& at) const {
  auto const& all = servers_.shards();
  auto const found = std::find_if(all.begin(), all.end(), [&](auto const& shard) { return shard->leads_to(at); });
  return found == all.end() ? nullptr : found->get();
}

shard& cluster_guide::of(std::string_view name) {
  node_address const* const at = slots_.at(slot_of(name));
  shard* const found = at ? leading_to(*at) : nullptr;
  return found ? *found : *servers_.shards().front();
}

cluster_scout::need cluster_guide::need() const {
  using need = cluster_scout::need;
  auto const& all = servers_.shards();
  if (!all.front()->names().requests.empty()) return need::press;  // nobody has their slots
  auto const needed = [](auto const& shard) { return shard->now() && shard->now()->needed(); };
  if (std::any_of(all.begin(), all.end(), [](auto const& shard) { return shard->missed(); })) return need::press;
  bool const any = std::any_of(all.begin(), all.end(), needed) || servers_.needs_any_server();
  return any || releases_at_stake(shared_) ? need::watch : need::nothing;
}

// A node says its own address only if it knows it.
node_address cluster_guide::place_of(cluster_member const& node, node_address const& by) const {
  bool const named = by_name_ && !node.name.empty();
  node_address made = reached_by(shared_, named ? node_address{node.name, node.at.port} : node.at);
  if (made.host.empty()) made.host = by.host;
  return made;
}

// Or it was at some time: what is missing later is missing for those alone that ask for it.
bool cluster_guide::seen_whole(std::vector<cluster_master> const& masters) const {
  auto const& all = servers_.shards();
  if (std::any_of(all.begin(), all.end(), [](auto const& shard) { return shard->now() != nullptr; })) return true;
  int count = 0;
  for (auto const& master : masters)
    for (auto const& [first, last] : master.slots) count += last - first + 1;
  return count == slot_count;
}

// No witness names it, and it is not there: another node is at its place, or it was tried in vain. One that is idle is
// not known to be gone.
bool cluster_guide::is_gone(slot_map::claimant const& one, cluster_view const& seen, node_address const& by) const {
  auto const is_it = [&](cluster_member const& node) { return node.id == one.id; };
  if (std::any_of(seen.named.begin(), seen.named.end(), is_it)) return false;
  auto const is_there = [&](cluster_member const& node) {
    return node.at.port != 0 && !node.failed && place_of(node, by) == one.at;
  };
  if (std::any_of(seen.named.begin(), seen.named.end(), is_there)) return true;
  shard const* const led = leading_to(one.at);
  return !led || led->in_vain();
}

// Epochs do not grow where a node is forgotten (CLUSTER FORGET) and an operator gives its slots to another one, nor
// where a cluster is made anew: such claims would be refused for ever. A witness that has not heard of a new node says
// the same for a while.
void cluster_guide::give_up_gone(cluster_view const& seen, node_address const& by) {
  std::vector<slot_map::claimant> gone;
  for (auto const& master : seen.masters) {
    node_address const at = place_of(master, by);
    for (auto const& one : slots_.standing_against(master.id, at, master.epoch, master.slots)) {
      if (!is_gone(one.of, seen, by)) continue;
      gone.push_back(one.of);
      auto const known = [&](doubt const& before) { return before.of == one.of; };
      if (std::any_of(doubts_.begin(), doubts_.end(), known)) continue;
      doubts_.push_back({one.of});
      shared_.note(event_type::warning, {}, 0, {},
                   in_words(one.slots) + " are claimed by " + to_string(at) + " with epoch " +
                       std::to_string(master.epoch) + ", and " + to_string(one.of.at) + " had them with epoch " +
                       std::to_string(one.of.epoch) + ", as node " + one.of.id + ", which is named no more");
    }
  }
  std::erase_if(doubts_, [&](doubt& one) {
    if (std::find(gone.begin(), gone.end(), one.of) == gone.end()) {
      one.answers = 0;
      return slots_.slots_of(one.of.at) == 0 || slots_.epoch_of(one.of.at) != one.of.epoch;
    }
    if (one.answers++ == 0) one.since = shared_.now;
    if (one.answers < enough_answers || after(one.since, longest_ignorance) > shared_.now) return false;
    slots_.give_up(one.of);
    return true;
  });
}

error_code cluster_guide::on_cluster(node_address const& by, cluster_view const& seen, instant asked) {
  auto const& masters = seen.masters;
  shared_.forget_ended_releases();
  if (shared_.settings.check_slots_coverage && !seen_whole(masters)) return errc::no_master;
  give_up_gone(seen, by);
  std::vector<slot_map::change> changes;
  std::vector<place> places;
  std::vector<node_address> known, again;
  bool any = false;
  for (auto const& master : masters) {
    node_address& at = places.emplace_back(place{place_of(master, by)}).at;
    // Of two addresses of one node that which works is kept: a witness may have heard of the other one too late.
    if (auto const* const before = slots_.left_by(master.id, at, master.epoch)) {
      shard const* const led = leading_to(*before);
      if (led && led->up())
        at = *before;
      else
        changes.push_back(slots_.readdress(node_address(*before), at));
    }
    if (!master.failed) known.push_back(at);
    if (!master.name.empty()) named_[to_string({master.name, master.at.port})] = at;
    if (!master.name.empty() && !master.at.host.empty()) named_[to_string(master.at)] = at;
    places.back().same = slots_.epoch_of(at) == master.epoch;
    auto const risen = slots_.risen(master.id, at, master.epoch, master.slots);
    if (risen == slot_map::rise::elected) again.push_back(at);
    if (shard* const led = risen == slot_map::rise::perhaps ? leading_to(at) : nullptr) led->names().in_question = true;
    any = slots_.claim(master.id, at, master.epoch, master.slots, changes) || any;
  }
  note_changes(changes);
  follow(changes);
  for (auto const& at : again) lead_again(at);
  look_again();
  confirm(masters, places, asked);
  give_up_replaced(known);
  for (auto const& shard : servers_.shards()) {
    shard->expect_successor(true);
    shard->names().channels.ask_again();
  }
  scout_.know(std::move(known));
  note_uncovered();
  return any ? error_code() : errc::connect_failed;
}

// Each says itself whether it is a master still: all of them, and so not in every round
// of those that follow each other while one is missing.
void cluster_guide::confirm(std::vector<cluster_master> const& masters, std::vector<place> const& places,
                            instant asked) {
  bool const asks = shared_.now >= roles_due_;
  if (asks) roles_due_ = after(shared_.now, cluster_scout::usual_pause(shared_.settings) / 2);
  for (std::size_t i = 0; i < masters.size(); ++i) {
    shard* const led = leading_to(places[i].at);
    if (!led) continue;
    home& names = led->names();
    names.replicas.set_named(masters[i].replicas, shared_.now);
    if (places[i].same && !names.in_question) confirm_releases(shared_, names, asked);
    if (asks || names.replicas.connected() < names.replicas.named()) led->now()->links().ask_role();
  }
}

// Once for the same slots, until all have a node that are asked for.
void cluster_guide::note_uncovered() {
  servers_.shards().front()->names().unserved = true;
  std::vector<slot_map::range> missing;
  if (!servers_.shards().front()->names().requests.empty()) missing = slots_.uncovered();
  if (!missing.empty() && missing != uncovered_)
    shared_.note(event_type::slot_uncovered, {}, 0, errc::no_master, in_words(missing) + " have no node");
  uncovered_ = std::move(missing);
}

void cluster_guide::note_changes(std::vector<slot_map::change> const& changes) {
  for (auto const& change : changes) {
    std::string text = in_words(change.slots) + ": ";
    if (!change.from.host.empty()) text += "from " + to_string(change.from) + ' ';
    text += "to " + to_string(change.to) + ", epoch " + std::to_string(change.epoch);
    note_switch(shared_, change.from.host.empty(), text);
  }
}

// Who has taken over all that another one had, and had nothing before, is its replica: names stay in their shard, which
// leads elsewhere. Others go to the shard of the node that has their slots now.
void cluster_guide::follow(std::vector<slot_map::change> const& changes) {
  for (auto const& change : changes) {
    shard* there = leading_to(change.to);
    if (!there) {
      shard* const before = change.from.host.empty() ? nullptr : leading_to(change.from);
      bool const all = before && slots_.slots_of(change.from) == 0 &&
                       std::none_of(changes.begin(), changes.end(), [&](auto const& other) {
                         return other.from == change.from && !(other.to == change.to);
                       });
      there = all ? before : &servers_.make_shard();
      there->lead_to(change.to);
      if (all) there->names().replicas.promote_one();
    }
    quarantine(shared_, there->names());
  }
  if (!changes.empty()) servers_.move_names();
}

// What was asked of it before is asked once more, by new connections: a WAIT on the old ones says nothing of what was
// lost meanwhile.
void cluster_guide::lead_again(node_address const& at) {
  shard* const led = leading_to(at);
  if (!led) return;
  note_switch(shared_, false, to_string(at) + " was elected again, epoch " + std::to_string(slots_.epoch_of(at)));
  quarantine(shared_, led->names());
  led->lead_to(at);
}

// What may have been lost by an election, or by none: what is there is not made to wait, nor is it told of. A node that
// gets slot after slot is not looked through each time.
void cluster_guide::look_again() {
  for (auto const& shard : servers_.shards()) {
    home& names = shard->names();
    if (!shard->now() || !names.in_question || shared_.now < after(names.looked_after, between_looks)) continue;
    names.looked_after = shared_.now;
    names.in_question = false;
    if (shard->now()->links().idle())
      servers_.moved(names);
    else
      shard->lead_to(node_address(shard->now()->where()));  // what waits for a WAIT waits for one of the time before
  }
}

// Whose slots all have gone, and who is no master any more, is not asked again, and not believed.
void cluster_guide::give_up_replaced(std::vector<node_address> const& masters) {
  for (auto const& shard : servers_.shards()) {
    if (!shard->now()) continue;
    node_address const& at = shard->now()->where();
    if (slots_.slots_of(at) > 0 || std::find(masters.begin(), masters.end(), at) != masters.end()) continue;
    shard->retire();
    servers_.given_up(*shard);
  }
}

void cluster_guide::on_no_cluster(error_code const& why, std::string_view text, bool transient) {
  shared_.forget_ended_releases();
  shared_.note(event_type::connect_failed, {}, 0, why, text);
  auto const& all = servers_.shards();
  all.front()->names().unserved = false;
  if (std::any_of(all.begin(), all.end(), [](auto const& shard) { return shard->up(); })) return;
  for (auto const& shard : all) {
    shard->expect_successor(false);
    shard->hinder(text, why, transient);
  }
  servers_.trouble(*all.front(), why, text, transient);
}

// It is asked: others may not have heard yet of what it says.
void cluster_guide::misled(shard& by) { by.now() ? scout_.hurry(by.now()->where()) : scout_.hurry(); }

// The one that was asked knows better than any claim so far. A node that is not known yet is heard of by asking it.
void cluster_guide::note_redirected(redirection const& to, node_address const& at) {
  if (shared_.counters.redirected++ > 0) return;
  shared_.note(event_type::redirected, {}, 0, {}, "slot " + std::to_string(to.slot) + ": to " + to_string(at));
}

home* cluster_guide::redirected(shard& by, redirection const& to) {
  // It is to be told by a host name, and has none: the node that says so knows more of it. What is on its way waits.
  if (to.to.host == "?") {
    note_redirected(to, to.to);
    if (!to.once && by.now()) scout_.hurry(by.now()->where());
    return nullptr;
  }
  auto const known = named_.find(to_string(to.to));
  node_address at = known == named_.end() ? reached_by(shared_, to.to) : known->second;
  if (at.host.empty() && by.now()) at.host = by.now()->where().host;
  note_redirected(to, at);
  shard* there = leading_to(at);
  if (to.once) {
    if (!there) {
      there = &servers_.make_shard();
      there->lead_to(at);
    }
    return &there->names();
  }
  scout_.hurry(at);
  if (!there) return nullptr;
  if (node_address const* const owner = slots_.at(to.slot); owner && *owner == at) return &there->names();
  bool const further = slots_.moved(to.slot, at);
  // What one may not begin here one may not begin there either; what two nodes say to and fro makes that no longer. Of
  // a node that has not claimed it nobody knows whether it was replaced.
  home& next = there->names();
  if (further && next.quarantined_until <= shared_.now) quarantine(shared_, next);
  next.quarantined_until = std::max(next.quarantined_until, by.names().quarantined_until);
  servers_.move_names();
  return &there->names();
}

}  // namespace latchkey::detail
