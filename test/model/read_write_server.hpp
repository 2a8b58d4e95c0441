#pragma once
// The server's side of the read/write model: the hash, one stamp (timeout key) per read hold, and the scripts of
// lib/wire/read_write_scripts.cpp as single steps. Time is in ticks.

#include <algorithm>
#include <cstdint>

using u8 = std::uint8_t;

inline constexpr int owners = 3;  // 0 and 1 belong to one client, 2 to another
inline constexpr int most_holds = 3;
inline constexpr int read_side = 0, write_side = 1;
inline constexpr int short_lease = 1, watchdog_lease = 2, long_lease = 3;

enum mode : u8 { free_mode, read_mode, write_mode };
enum what : u8 { nothing, acquire, release };
enum answers : u8 { granted, busy, gone, released, still_held, absent };

// Rules that can be taken out; 1 is the algorithm as it is.
struct server_rules {
  int write_keeps_time = 1;  // while somebody writes, a read release does not lower the time to live
  int renew_raises = 1;      // a renewal of a read hold never shortens the time of the hash
  int downgrade_tells = 1;   // the writer who leaves read holds behind publishes
  int downgrade_keeps = 1;   // ... and leaves them
  int others_stay = 1;       // the last release of one reader leaves the others
  int reclaim = 1;           // readers whose stamps are gone are not waited for
  int carry_stamps = 1;      // an acquire that corrects the count carries the longest stamp
  int stamps_set = 1;        // a partial release sets the stamps that stay to the longest lease that stays
  int own_write_only = 1;    // only the writer himself reads beside his write hold
  int readers_count = 1;     // a writer waits for readers
  int never_shorter = 1;     // an acquire never shortens the time of the hash
};
inline server_rules rules;

struct server_state {
  u8 in = free_mode;
  u8 time = 0;  // of the hash
  u8 reads[owners] = {}, writes[owners] = {};
  u8 stamps[owners][most_holds] = {};
  u8 told = 0;  // something was published in this step

  void clear() {
    in = free_mode, time = 0;
    for (int o = 0; o < owners; ++o) reads[o] = writes[o] = 0;  // stamps end by themselves
  }
  int longest_of(int o) const {
    int most = 0;
    for (int i = 0; i < reads[o]; ++i) most = std::max<int>(most, stamps[o][i]);
    return most;
  }
  int longest_read(int but = -1) const {
    int most = 0;
    for (int o = 0; o < owners; ++o)
      if (o != but) most = std::max(most, longest_of(o));
    return most;
  }
  bool admits(int o, int side) const {
    if (in == free_mode) return true;
    if (side == write_side) return in == write_mode ? writes[o] > 0 : !rules.readers_count;
    return in == read_mode || writes[o] > 0 || !rules.own_write_only;
  }
  void raise(int lease) { time = u8(std::max<int>(time, lease)); }

  answers run_acquire(int o, int side, int target, int lease) {
    u8& count = side == write_side ? writes[o] : reads[o];
    if (target > 1 && count == 0) return gone;
    if (!admits(o, side)) return busy;
    if (in == free_mode) in = side == write_side ? write_mode : read_mode;
    if (side == write_side) in = write_mode;
    int stamp = lease;
    if (side == read_side && target > 1 && count >= target && rules.carry_stamps)
      stamp = std::max(lease, longest_of(o));
    count = u8(target);
    if (side == read_side) stamps[o][target - 1] = u8(stamp);
    if (rules.never_shorter)
      raise(stamp);
    else
      time = u8(lease);
    return granted;
  }

  answers run_release(int o, int side, int target, int lease) {
    u8& count = side == write_side ? writes[o] : reads[o];
    if (count == 0) return absent;
    if (side == write_side) return release_write(o, target, lease);
    int const had = count;
    count = u8(target);
    if (target > 0) {
      for (int i = 0; i < target && rules.stamps_set; ++i) stamps[o][i] = u8(lease);
      raise(lease);
    }
    for (int i = target; i < had; ++i) stamps[o][i] = 0;
    if (in == write_mode && rules.write_keeps_time) return target > 0 ? still_held : released;
    int const most = longest_read();
    bool const others = in == write_mode || std::any_of(reads, reads + owners, [](u8 n) { return n > 0; });
    if (target > 0 || (others && (most > 0 || !rules.reclaim) && rules.others_stay)) {
      if (most > 0) time = u8(most);
      return target > 0 ? still_held : released;
    }
    clear();
    told = 1;
    return released;
  }

  answers release_write(int o, int target, int lease) {
    writes[o] = u8(target);
    if (target > 0) {
      time = u8(std::max(lease, longest_read()));
      return still_held;
    }
    if (reads[o] == 0 || !rules.downgrade_keeps) {
      clear();
      told = 1;
      return released;
    }
    in = read_mode;
    if (longest_read() > 0) time = u8(longest_read());
    told = u8(rules.downgrade_tells);
    return released;
  }

  answers run_renew(int o, int side) {
    u8 const count = side == write_side ? writes[o] : reads[o];
    if (count == 0) return absent;
    for (int i = 0; side == read_side && i < count; ++i) stamps[o][i] = u8(std::max<int>(stamps[o][i], watchdog_lease));
    if (side == read_side && !rules.renew_raises)
      time = watchdog_lease;
    else
      raise(watchdog_lease);
    return granted;
  }

  // True: the hash has gone.
  bool tick() {
    for (auto& of : stamps)
      for (auto& one : of) one = u8(one > 0 ? one - 1 : 0);
    if (time > 0 && --time == 0) {
      clear();
      return true;
    }
    return false;
  }
};
