#pragma once
// What can be chosen in the model of local turns: how much there is of everything, and which rules hold.

// How much there is of everything. Times are in ticks.
struct turns_sizes {
  int owners0 = 2, owners1 = 1;  // of the first client, of the second
  int local0 = 1, local1 = 1;    // 0: a client without local turns, whose re-entries and inner unlocks ask the server
  int counts0 = 1, counts1 = 1;  // 0: a client that never writes a count above 1 and confirms by renewals
  int holds = 1;                 // of one owner
  int life = 2;                  // calls of one owner
  int leases = 1;                // bits: 1 the watchdog's, 2 a tick, 4 a tick more than the watchdog's
  int watchdog = 2;
  int max_time = 1, max_streak = 2;  // a tenure's turns end with the first of them
  int ticks = 1, renewals = 1;       // 0: none
  int members = 0;                   // 1: calls may be those of a joint lock for this member
  int other_kind = 0;                // calls through another kind of the same name, by the first client
  int reads = 0;                     // calls of one owner that want to read: the lock is the write lock of a pair
  int hand_offs = 0;                 // 1: a release behind which one waits may be a turn, a hand-off, or neither
  // how often each may happen
  int discards = 0, message_losses = 0, not_run = 0, cancels = 0, closes = 0;
  int own_forces = 0, foreign_forces = 0, vanishes = 0;
};
inline turns_sizes sizes;

// Rules that can be taken out; 1 is the algorithm as docs/safety.md has it, by its numbers.
struct turns_rules {
  int one_request = 1;        // 1: a release waits for the make-it under way
  int one_try = 1;            // 1: an acquire waits until the release of the tenure was answered
  int in_its_name = 1;        // 1: what a tenure asks for goes in the name of the owner whom the server shows
  int by_holder = 1;          // 2: who has the lock is the holder, not the owner whom the server shows
  int from_send = 1;          // 3: a deadline counts from the sending
  int only_raises = 1;        // 3: what is said inside a tenure never shortens it
  int this_tenure = 1;        // 3: a renewal's answer speaks of its own tenure only
  int unsent_only = 1;        // 4: a turn replaces a release only if no copy of that was ever sent
  int time_bound = 1;         // 4
  int turn_bound = 1;         // 4
  int began_fixed = 1;        // 5: renewals and make-its do not prolong a streak
  int began_first = 1;        // 5: nor does a repeated acquire
  int lease_fits = 1;         // 6: a hold does not outlast the tenure: a lease that does not fit takes no turn
  int watchdog_bound = 1;     // 6: nor does the watchdog's
  int fixed_ends = 1;         // 8: a fixed lease that is over makes room
  int awaits_count = 1;       // 11: a make-it is a request like others, not sent and forgotten
  int in_doubt = 1;           // 11: from a make-it's sending to its answer the count is not known
  int confirms = 1;           // 11: a hold that a turn began is confirmed
  int sent_later = 1;         // 11, 13: by an answer to what was sent after it
  int tells = 1;              // 12: the holder hears that the tenure is gone
  int lost_tries = 1;         // 12: and the next one tries
  int lapsed_returns = 1;     // 12: what ended by the clock is given back
  int message_doubts = 1;     // 13: a message heard inside a tenure
  int own_force_doubts = 1;   // 13: a force-unlock of one's own
  int abandoned_returns = 1;  // 14: a grant that is not awaited any more
  int kill = 1;               // 15
  int absent_tries = 1;       // 16: a release that found nothing: the head tries
  int publishes = 1;          // 16
  int resubscribes = 1;       // 16
  int pause_tries = 1;        // 16: the head tries after the pause, without another message
  int pause_stays = 1;        // 16: the pause is the queue's: it outlives the caller who waited for it
  int field_in_use = 1;       // 17
  int other_in_use = 1;       // 17: and the other way round
  int members_ask = 1;        // a member of a joint lock is asked for at the server
  int members_return = 1;     // and given back to it
  int read_ends = 1;          // reads: behind a holder who also reads no turn begins
  int asked_read_ends = 1;    // reads: nor behind one who has asked to
  int readers_ask = 1;        // reads: a reader takes no turn
  int reads_in_its_name = 1;  // reads: the holder reads in the field in which it writes
  int read_keeps_field = 1;   // reads: and has that until it reads no more
  int lent_reads_apart = 1;   // reads: the field's owner meanwhile reads in one of its own
  int lent_writes_wait = 1;   // reads: and writes later
  int unsent_handed = 1;      // hand-off: only if no copy of the release was sent; 2: or what was sent was killed
  int handed_ends = 1;        // hand-off: its sending ends the tenure
  int lent_not_handed = 1;    // hand-off: nothing is handed to the owner of the field that it ends
  int run_bound = 1;          // hand-off: turns and hand-offs are bounded as one streak; 2: hand-offs alone are
  int run_first = 1;          // hand-off: and its time counts from the first of them
  int began_handed = 1;       // hand-off: the tenure begins with the first sending
  int kill_handed = 1;        // hand-off: KILL comes before its repetition
  int handed_returns = 1;     // hand-off: what an abandoned grantee may have is given back
  int back_awaited = 1;       // hand-off: until that is answered no other one asks
  int heard_beside = 1;       // hand-off: what is heard before both are answered is not forgotten
};
inline turns_rules rules;
