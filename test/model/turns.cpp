// Explicit-state model of local turns: two clients with up to three owners each, one name on one server. A client has
// at most one tenure of the name: what the server shows for it. Its owners take turns in that without asking, as
// re-entry, from one to the next, or in place of a release that was not sent. With hand_offs=1 such a release may also
// be one request with the acquire of the next: then a tenure of that owner begins.
//
//   g++ -O2 -std=c++20 turns.cpp -o turns      ./turns owners1=0 holds=2 ticks=0      ./turns kill=0 discards=1
//
// The one request of the name, the renewal beside it, a force-unlock and what lost connections left behind run in any
// order. Left out: the line of the fair lock, renewals of readers, another server, a SUBSCRIBE that is never answered.

#include "small_search.hpp"
#include "turns_steps.hpp"

namespace {

struct state : turns_steps<state> {
  // --- what must be true ---

  char const* wrong() const {
    if (broken != fine) return violations[broken];
    int holders = 0;
    for (int c = 0; c < 2; ++c) {
      auto const& t = clients[c].tenure;
      auto const& x = clients[c].other;
      if (x.held && !x.gone) {
        ++holders;
        if (server.holder != field_of(c, x.by) || server.ttl < x.left) return "FORGOTTEN: the other kind's hold";
      }
      if (!t.lasts || t.holder == nobody || t.gone) continue;
      ++holders;
      if (server.holder && client_of(server.holder) != c) return "EXCLUSION: the server granted it to the other client";
      if (!shows(c) || server.ttl < t.longest()) return "FORGOTTEN: the server forgets before the holder does";
    }
    if (holders > 1) return "EXCLUSION: two holders";
    if (char const* what = wrong_reading()) return what;
    return quiet() ? wrong_at_rest() : nullptr;
  }

  char const* wrong_reading() const {
    for (int c = 0; c < 2; ++c)
      for (int o = 0; o < owners_of(c); ++o) {
        auto const& r = clients[c].read[o];
        if (!r.left || r.gone) continue;
        for (int other = 0; other < 2; ++other) {
          auto const& t = clients[other].tenure;
          bool const writes = t.lasts && t.holder != nobody && !t.gone;
          if (writes && (other != c || t.holder != o)) return "EXCLUSION: one reads beside a writer";
        }
        if (server.readers[field_of(c, r.by) - 1] <= r.left || server.ttl < r.left)
          return "FORGOTTEN: the server forgets before the reader does";
      }
    return nullptr;
  }

  // Nothing happens any more but by users, time and faults.
  bool quiet() const {
    for (int c = 0; c < 2; ++c) {
      auto const& q = clients[c];
      if (std::any_of(q.read, q.read + most_owners, [](auto const& r) { return r.where != nowhere; })) return false;
      if (q.ask.where || q.back.where || q.beside.where || q.forcing || q.late_count || q.kills || q.subscribed == 1 ||
          q.message || q.pause == pausing || q.other.where == sent || q.other.where == answered || confirmation_due(c))
        return false;
    }
    return true;
  }

  static bool waits_for_own(turns_client const& q) {
    return (is_lent(q, q.queue[0]) && !(q.want_read >> q.queue[0] & 1)) || stand_in_used(q);
  }
  bool is_free_for(turns_client const& q, int) const {
    bool const reader = q.want_read >> q.queue[0] & 1;
    return !server.holder && (reader || !server.read()) && !waits_for_own(q);
  }

  char const* wrong_at_rest() const {
    for (int c = 0; c < 2; ++c) {
      auto const& q = clients[c];
      auto const& t = q.tenure;
      bool const other = q.other.where && field_of(c, q.other.by) == server.holder;
      if (t.vacant()) return "GHOST: a tenure that nobody has is kept";
      if (t.lasts && !t.gone && shows(c) && server.count != (counts(c) ? t.live() : 1))
        return "COUNT: the server's count is wrong at rest";
      if (t.lasts && t.gone && t.gone_turn) return "NOT TOLD: a turn that began on nothing lives on";
      if (server.holder && client_of(server.holder) == c && !other && (!t.lasts || !shows(c)))
        return "GHOST: the server has a hold that nobody wants";
      for (int by = 0; by <= stand_in; ++by)
        if (reads(c, by) &&
            std::none_of(q.read, q.read + most_owners, [&](auto const& r) { return r.left && r.by == by; }))
          return "GHOST: the server has a read hold that nobody wants";
      if (q.queued && !t.lasts && is_free_for(q, c) && !(server.expired && q.hint))
        return "LOST WAKE-UP: a waiter sleeps, the lock is free";
      if (q.queued && !t.lasts && !is_free_for(q, c) && !waits_for_own(q) && !q.hint && q.subscribed != 2)
        return "LOST WAKE-UP: a waiter hears nothing";
    }
    return nullptr;
  }
};

int limit = 8'000'000, walk = 0, walks = 1000, seed = 1;

#define OF(group, name) \
  { #name, &group.name }
std::vector<setting> const all = {OF(sizes, owners0),
                                  OF(sizes, owners1),
                                  OF(sizes, local0),
                                  OF(sizes, local1),
                                  OF(sizes, counts0),
                                  OF(sizes, counts1),
                                  OF(sizes, holds),
                                  OF(sizes, life),
                                  OF(sizes, leases),
                                  OF(sizes, watchdog),
                                  OF(sizes, max_time),
                                  OF(sizes, max_streak),
                                  OF(sizes, ticks),
                                  OF(sizes, renewals),
                                  OF(sizes, members),
                                  OF(sizes, other_kind),
                                  OF(sizes, reads),
                                  OF(sizes, hand_offs),
                                  OF(sizes, discards),
                                  OF(sizes, message_losses),
                                  OF(sizes, not_run),
                                  OF(sizes, cancels),
                                  OF(sizes, closes),
                                  OF(sizes, own_forces),
                                  OF(sizes, foreign_forces),
                                  OF(sizes, vanishes),
                                  OF(rules, one_request),
                                  OF(rules, one_try),
                                  OF(rules, in_its_name),
                                  OF(rules, by_holder),
                                  OF(rules, from_send),
                                  OF(rules, only_raises),
                                  OF(rules, this_tenure),
                                  OF(rules, unsent_only),
                                  OF(rules, time_bound),
                                  OF(rules, turn_bound),
                                  OF(rules, began_fixed),
                                  OF(rules, began_first),
                                  OF(rules, lease_fits),
                                  OF(rules, watchdog_bound),
                                  OF(rules, fixed_ends),
                                  OF(rules, awaits_count),
                                  OF(rules, in_doubt),
                                  OF(rules, confirms),
                                  OF(rules, sent_later),
                                  OF(rules, tells),
                                  OF(rules, lost_tries),
                                  OF(rules, lapsed_returns),
                                  OF(rules, message_doubts),
                                  OF(rules, own_force_doubts),
                                  OF(rules, abandoned_returns),
                                  OF(rules, kill),
                                  OF(rules, absent_tries),
                                  OF(rules, publishes),
                                  OF(rules, resubscribes),
                                  OF(rules, pause_tries),
                                  OF(rules, pause_stays),
                                  OF(rules, field_in_use),
                                  OF(rules, other_in_use),
                                  OF(rules, members_ask),
                                  OF(rules, members_return),
                                  OF(rules, read_ends),
                                  OF(rules, asked_read_ends),
                                  OF(rules, readers_ask),
                                  OF(rules, reads_in_its_name),
                                  OF(rules, read_keeps_field),
                                  OF(rules, lent_reads_apart),
                                  OF(rules, lent_writes_wait),
                                  OF(rules, unsent_handed),
                                  OF(rules, handed_ends),
                                  OF(rules, lent_not_handed),
                                  OF(rules, run_bound),
                                  OF(rules, run_first),
                                  OF(rules, began_handed),
                                  OF(rules, kill_handed),
                                  OF(rules, handed_returns),
                                  OF(rules, back_awaited),
                                  OF(rules, heard_beside),
                                  {"limit", &limit},
                                  {"walk", &walk},
                                  {"walks", &walks},
                                  {"seed", &seed}};
#undef OF

}  // namespace

int main(int count, char** words) {
  std::string title;
  if (!set(all, count, words, title)) return 2;
  state start;
  std::memset(static_cast<void*>(&start), 0, sizeof start);
  for (auto& q : start.clients) q.tenure.holder = nobody;
  if (walk > 0) return random_walks(start, walk, walks, seed, title);
  small_search<state> search;
  return search.run(start, std::size_t(limit), title, true);
}
