#pragma once
// What must be true of every state.

#include "state.hpp"

// Nothing is under way between client and server, and no late copy can run.
inline bool quiet(state const& s) {
  bool busy = s.asked_n || s.answers_n || s.direct_asked.what || s.direct_answer.what || s.old_answer.what || s.sub_n ||
              s.push_n;
  for (int i = 0; i < slots; ++i) busy |= s.late_n[i] > 0;
  for (int x = 0; x < o.owners; ++x) busy |= s.w[x].what != NOTHING;
  return !busy;
}

inline void check(state const& s, std::vector<std::string>& found) {
  server_state const& lock = real(s);
  int believers = 0;
  for (int x = 0; x < o.owners; ++x) {
    owner_state const& w = s.w[x];
    int most = 0;
    for (u8 left : w.left) most = left > most ? left : most;
    if (!most || (w.marks & FORCED)) continue;
    ++believers;
    if (!o.check_strong) continue;
    if (lock.holder && lock.holder != x + 1)
      found.push_back("EXCLUSION: a trusted hold, and the server granted the lock to somebody else");
    else if (!lock.holder || lock.ttl < most)
      found.push_back("FORGOTTEN: the server forgets before the owner does");
  }
  if (believers > 1) found.push_back("EXCLUSION: two owners of this client hold it");
  if (!quiet(s)) return;
  for (int x = 0; x < o.owners; ++x) {
    owner_state const& w = s.w[x];
    if (lock.holder != x + 1) continue;
    if (live(w) == 0)
      found.push_back("GHOST: the server has a hold that nobody owns, and all is quiet");
    else if (live(w) != lock.count && !(w.marks & FORCED))
      found.push_back("COUNT: belief and server count differ, and all is quiet");
  }
}

// Nothing happens by itself any more: is somebody forgotten?
inline void check_end(state const& s, std::vector<std::string>& found) {
  u8 const holder = real(s).holder;
  bool const nobody = holder == 0 || (holder < stranger && live(s.w[holder - 1]) == 0);
  for (int x = 0; x < o.owners; ++x)
    if (s.w[x].what) {
      found.push_back("STUCK: a request without anything on the way");
      return;
    }
  if (s.force_pending == 2) found.push_back("STUCK: the caller of a force-unlock never hears");
  if (s.stranger_waits == 1 && !holder) found.push_back("LOST WAKE-UP: another client waits, and nobody tells it");
  if (!s.queue_n) return;
  if (nobody)
    found.push_back(holder ? "LOST WAKE-UP: somebody waits behind a hold that nobody owns"
                           : "LOST WAKE-UP: the lock is free, somebody waits, nothing is on the way");
  else
    for (int i = 0; i < s.queue_n; ++i)
      if (holder == s.queue[i] + 1) found.push_back("SELF-DEADLOCK: a holder waits in the queue behind others");
}
